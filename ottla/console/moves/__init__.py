"""Moves of partitions that the console has started: their throttles end with them."""
