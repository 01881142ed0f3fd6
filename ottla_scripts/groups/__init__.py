"""`kafka-consumer-groups`, `kafka-groups` and `kafka-streams-application-reset`."""
