"""TopologyTestDriver and MockProcessorContext: a topology or a processor inside a test."""
