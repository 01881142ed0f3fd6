"""`ottla spark`: Spark on this machine, and what verbs that need it have in common."""
