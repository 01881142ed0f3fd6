"""`ottla acl …`: the access control lists of a cluster with an authorizer."""
