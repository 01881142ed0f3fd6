"""Client metrics (KIP-714): who is to push what, and the latest of what was pushed."""
