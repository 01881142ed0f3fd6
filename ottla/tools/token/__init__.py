"""`ottla token …`: the delegation tokens of a cluster that issues them (KIP-48)."""
