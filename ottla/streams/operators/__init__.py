"""The operators of the DSL, each as a frozen description that creates its processor.

An operator is a processor supplier with fields, so that a plan can be printed and compiled from
them. The semantics are the same as for Kafka Streams' processors, record by record; tests/streams
compares both.
"""
