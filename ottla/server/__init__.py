"""Layer 4: the broker process — dispatch, one handler per API, configuration, and the node."""
