"""Floor 5: what tests need — an embedded cluster, the pytest plugin, the simulated world, checkers."""
