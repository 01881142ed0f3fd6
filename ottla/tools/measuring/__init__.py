"""Measurements of clients, of `ottla perf` and of Apache Kafka's performance scripts alike."""
