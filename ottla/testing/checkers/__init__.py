"""Checkers: verify a history of requests and responses against the guarantees of the broker."""
