"""Pages of access: the ACLs, users and quotas of a cluster; the users of the console."""
