"""Admin APIs of Apache Kafka that Ottla's broker does not serve: one module per subject.

Each function raises Unsupported if the brokers do not offer its request.
"""
