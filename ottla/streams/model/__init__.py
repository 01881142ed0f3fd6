"""The values every part of Kafka Streams shares: records, windows, durations, errors and names."""
