"""Streaming queries: compiled, started, explained, watched."""
