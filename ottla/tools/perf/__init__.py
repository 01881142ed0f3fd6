"""`ottla perf`: measure producers and consumers, verify them, and run workloads with faults."""
