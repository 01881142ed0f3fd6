"""One log: segments, appends, reads, recovery, retention, producer state."""
