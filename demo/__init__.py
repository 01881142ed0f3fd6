"""Programs to watch: `make demo`."""
