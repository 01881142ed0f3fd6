"""Dynamic configuration: the store that follows the tree, alterations, loggers and features."""
