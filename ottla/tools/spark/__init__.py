"""`ottla spark`: manage Spark on this machine. Also the code shared by commands that need Spark."""
