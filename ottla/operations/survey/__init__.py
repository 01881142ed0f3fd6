"""Requests for whole clusters: to all brokers in parallel, tolerant of brokers that are down."""
