"""The broker's extensions on its HTTP port: a search in its logs, and the lag of groups in seconds (docs/http.md)."""
