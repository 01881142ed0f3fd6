"""Workloads with faults as TOML files: producers, consumers, and faults of brokers.

They do what Apache Kafka's Trogdor does with its produce, consume and fault specifications.
`trogdor run FILE` runs one.
"""
