"""Ottla beside Apache Kafka on one machine: interleaved rounds, medians, ratios."""
