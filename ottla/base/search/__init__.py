"""Filters of records: one language for the brokers, the tools and the console."""
