"""Exchanges in which peers prove their identities. Pure: bytes in, bytes out."""
