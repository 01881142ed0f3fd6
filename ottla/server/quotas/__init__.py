"""Quotas: the limits that are set, the use of each client, and its throttle time."""
