"""Consumer groups of both protocols: committed offsets, shards of __consumer_offsets, the service."""
