"""SQL over topics: records of a time range, read into DuckDB in a process of its own."""
