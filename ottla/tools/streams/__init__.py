"""`ottla streams …`: run, list, describe and reset stream applications."""
