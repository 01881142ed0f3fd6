"""Produce: admission of transactional batches, batches judged off the loop, the short path."""
