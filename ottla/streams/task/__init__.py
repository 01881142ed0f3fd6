"""The task, which runs a sub-topology record by record, with its stores, clocks and record cache."""
