"""`ottla topic …`: create, list, describe, configure and delete topics."""
