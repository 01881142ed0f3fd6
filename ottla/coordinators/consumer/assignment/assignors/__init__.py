"""The assignors of the coordinator, which map partitions to members, by name. Pure."""
