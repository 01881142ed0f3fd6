"""Benchmarks of Ottla and Apache Kafka on one machine: interleaved rounds, medians, ratios."""
