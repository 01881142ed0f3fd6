"""The data of the console: plain functions that take a `ClusterConnection` and return frozen
values.

Calls block; the web side runs them in threads, and any number may run at the same time on one
connection. Functions that change a cluster return a `Change` for the audit log. Times are
milliseconds since 1970 (`_ms`) or seconds (`_s`), sizes are bytes (`_bytes`).

Each function raises ClusterUnavailable if no broker responds, ApiError if the broker rejects the
request, Unsupported if the cluster lacks the API, and ConfigError for invalid arguments.
"""
