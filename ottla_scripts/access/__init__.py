"""Access control lists and SCRAM users."""
