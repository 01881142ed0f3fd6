"""Access to a cluster: entries of access control lists, and delegation tokens."""
