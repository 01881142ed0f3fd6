"""Pages of consumer groups."""
