"""Moves of replicas between brokers: new assignments, and limits of traffic (KIP-73)."""
