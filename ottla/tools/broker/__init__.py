"""`ottla up`: the broker as a process."""
