"""The controller: one broker decides for the cluster, through a tree that fences its predecessors."""
