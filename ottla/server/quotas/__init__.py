"""Quotas: what is set, how much of it a client has used, and how long it has to wait."""
