"""Requests for whole clusters: batched, to all brokers in parallel, tolerant of brokers that are
down.
"""
