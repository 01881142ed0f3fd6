"""Lessons about defaults of Apache Kafka; each names the default and the KIP that explains it."""
