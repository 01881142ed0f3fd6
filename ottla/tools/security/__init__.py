"""`ottla security …`: certificates for development, and users of clusters with SCRAM."""
