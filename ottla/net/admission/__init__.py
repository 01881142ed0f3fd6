"""Admission of strangers: connections before TLS is established and before their client is known."""
