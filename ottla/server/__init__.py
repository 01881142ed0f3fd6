"""Layer 4: the broker process — dispatch, one handler per file, configuration, and the node."""
