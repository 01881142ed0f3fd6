"""`ottla profile …`: named clusters, so that commands need no --bootstrap."""
