"""A simulated cluster: real brokers, their clients and faults, replayed from one seed."""
