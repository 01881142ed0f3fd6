"""Decisions about replicas that the broker side and the client side share."""
