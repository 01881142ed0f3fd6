"""The rights of principals: the checks of every API, and the access control lists in the tree.

With `authorizer.class.name` the dispatcher passes each request through the check of its API
(`checks`) before the handler. Without it there are no checks, and no request takes longer. Follows
kafka.security.authorizer.AclAuthorizer and the checks in kafka.server.KafkaApis.
"""
