"""The assignment of a group of the consumer protocol: epochs, target, reconciliation."""
