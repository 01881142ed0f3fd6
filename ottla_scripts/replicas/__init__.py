"""Scripts about replicas: log directories, elections, reassignments, deleted records."""
