"""`ottla streams …`: run a topology of Kafka Streams' kind, and begin one anew."""
