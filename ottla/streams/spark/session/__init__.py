"""The Spark session: its settings, packages for executors, and a faster start."""
