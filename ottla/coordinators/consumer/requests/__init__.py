"""The requests of members of the consumer protocol, one module per decision."""
