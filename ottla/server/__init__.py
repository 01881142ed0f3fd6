"""Floor 4: the broker process — dispatch, one handler a file, configuration, and the node itself."""
