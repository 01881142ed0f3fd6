"""Who reads which partition: the assignors that the coordinator offers, by name. Pure."""
