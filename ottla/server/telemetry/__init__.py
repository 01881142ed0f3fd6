"""Client metrics (KIP-714): subscriptions, and the latest metrics pushed by each client."""
