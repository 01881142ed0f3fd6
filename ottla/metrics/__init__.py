"""Layer 0: metric instruments and their Prometheus text format; independent of the broker."""
