"""Values that all of Kafka Streams' parts share: records, windows, durations, errors and names."""
