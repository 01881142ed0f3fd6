"""Floor 1: bytes to values and back; no I/O."""
