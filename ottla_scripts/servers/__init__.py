"""Scripts that start and stop servers, and that reach a ZooKeeper."""
