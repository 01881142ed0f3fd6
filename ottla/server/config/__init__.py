"""Dynamic configuration: the store that follows the tree, its alteration, loggers and features."""
