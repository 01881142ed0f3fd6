"""The coordination tree of a broker, in its directory or on ZooKeeper."""
