"""Decisions of Apache Kafka's authorizer about access control lists."""
