"""`ottla metrics …`: the metrics that clients push to their brokers (KIP-714)."""
