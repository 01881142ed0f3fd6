"""`ottla replica`: compare the replicas of partitions."""
