"""A producer and a consumer of bytes, with our errors and values, for the tools."""
