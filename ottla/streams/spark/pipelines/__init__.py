"""Pipeline files on Spark: frames, sinks, JDBC, mirrors, files."""
