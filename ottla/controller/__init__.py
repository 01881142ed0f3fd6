"""The controller: the broker that decides for the cluster; epochs fence its predecessors."""
