"""Demo programs: `make demo`."""
