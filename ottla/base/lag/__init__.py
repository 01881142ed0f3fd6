"""The lag of groups, for brokers and for tools."""
