"""Layer 0: metric instruments and their Prometheus text format; knows no broker."""
