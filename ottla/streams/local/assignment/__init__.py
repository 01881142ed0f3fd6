"""The assignment of tasks and replicas to the members of an application's group."""
