"""Placement of replicas: pure functions from the present assignment to a better one."""
