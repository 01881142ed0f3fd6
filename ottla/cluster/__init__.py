"""Layer 2: the cluster — the coordination tree, its znodes, and the immutable image of it."""
