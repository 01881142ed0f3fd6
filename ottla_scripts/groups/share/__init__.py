"""`kafka-share-groups`: share groups (KIP-932) of Apache Kafka clusters."""
