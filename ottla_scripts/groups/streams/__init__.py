"""`kafka-streams-groups`: streams groups (KIP-1071) of Apache Kafka clusters."""
