"""`ottla generate`: files for the programs that run and watch a cluster."""
