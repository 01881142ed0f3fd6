"""`ottla up`: run a broker as a process."""
