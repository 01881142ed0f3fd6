"""TLS of listeners, and of connections to brokers: contexts, key stores, versions and suites."""

HANDSHAKE_SECONDS = 10.0
"""A peer that has not completed the handshake by then is disconnected."""
