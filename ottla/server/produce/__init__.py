"""Produce: admission of transactional batches, validation off the event loop, the fast path."""
