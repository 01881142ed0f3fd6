"""Moves of replicas: between brokers (KIP-455), and between the log directories of one (KIP-113)."""
