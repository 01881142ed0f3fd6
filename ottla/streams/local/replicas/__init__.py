"""The states of tasks in a worker, and standby replicas: states that follow their changelogs."""
