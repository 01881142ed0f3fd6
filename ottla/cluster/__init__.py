"""Floor 2: what the cluster is — the coordination tree, its znodes, and the immutable image of it."""
