"""Floor 3: partitions as replicas — leader epoch, ISR, high watermark, and who waits for it."""
