"""TopologyTestDriver and MockProcessorContext: run a topology or a processor inside a test."""
