"""Where replicas should be: pure functions from the present assignment to a better one."""
