"""`ottla transaction …`: the transactions of producers (KIP-664)."""
