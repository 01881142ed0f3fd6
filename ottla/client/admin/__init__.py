"""Administration of a cluster: one module a subject, functions that take `Brokers` and return values.

Each function finds the broker that must answer, repeats what fails in passing, and raises ApiError for
what the cluster refuses.
"""
