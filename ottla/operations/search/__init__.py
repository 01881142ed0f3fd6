"""Searches of records."""
