"""The producer: interceptors, serializers and a partitioner in front of librdkafka."""
