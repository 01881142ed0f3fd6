"""The lag of groups in records and in seconds, also for partitions that other brokers lead."""
