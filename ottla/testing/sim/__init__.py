"""The five ports, simulated: virtual time, an in-memory disk and network that fail on request."""
