"""`ottla zookeeper …`: copy a cluster's metadata between a directory and a ZooKeeper ensemble."""
