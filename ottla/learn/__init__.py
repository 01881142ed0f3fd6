"""Layer 7: questions about Kafka, each with a scenario on a running cluster.

`course` lists the lessons and runs them, `stage` is what a scenario works with, `observation` takes
pictures of the cluster, and `scenarios/` has the lessons. Every fact in a text comes from the
cluster; `command` is `ottla learn`, which draws the events on a terminal.
"""
