"""Coordination: one port (`port`), and the trees behind it."""
