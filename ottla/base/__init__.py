"""Floor 0: the ports to the world, the error table and the option mechanism; stdlib only."""
