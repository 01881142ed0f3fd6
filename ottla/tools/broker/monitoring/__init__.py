"""The metrics of brokers, read from their HTTP ports."""
