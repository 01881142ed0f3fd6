"""Scripts about applications: Kafka Streams, Kafka Connect, mirrors."""
