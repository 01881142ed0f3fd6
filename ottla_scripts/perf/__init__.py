"""Scripts that measure or verify clients: performance tests, latency, verifiable clients."""
