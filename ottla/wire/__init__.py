"""Layer 1: decode bytes to values and encode values to bytes; no I/O."""
