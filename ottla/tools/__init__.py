"""Floor 5: the `ottla` command."""
