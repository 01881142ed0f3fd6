"""Scripts that change and show topics, configurations, offsets and replicas."""
