"""Compile, start, explain and monitor streaming queries."""
