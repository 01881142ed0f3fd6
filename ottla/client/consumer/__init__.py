"""The consumer: groups, positions, commits, deserializers and interceptors on top of librdkafka."""
