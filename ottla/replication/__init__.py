"""Layer 3: partitions as replicas — leader epoch, ISR, high watermark, delayed requests."""
