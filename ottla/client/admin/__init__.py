"""Administration of a cluster: one module per subject, functions that take `Brokers` and return
values.

Each function sends its request to the right broker, retries transient errors, and raises ApiError
for permanent ones.
"""
