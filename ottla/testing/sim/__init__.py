"""The five ports, simulated: virtual time, and an in-memory disk and network with fault injection."""
