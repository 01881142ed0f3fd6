"""`ottla cluster …`: the brokers of a cluster, their health, and moves of replicas."""
