"""Layer 0: ports to clock, files and randomness, the error table, options; stdlib only."""
