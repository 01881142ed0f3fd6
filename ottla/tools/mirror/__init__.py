"""Copies topics within a cluster or between two: `ottla topic copy` and `kafka-mirror-maker`."""
