"""`ottla debug bundle`: facts about a cluster for a report of a problem, without secrets."""
