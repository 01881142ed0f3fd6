"""The resources, principals and operations that a request about ACLs names."""

from dataclasses import dataclass

from ottla.client.admin.acls import PatternType, ResourcePattern, ResourceType
from ottla.security.acls import CLUSTER_NAME

CLUSTER = ResourcePattern(ResourceType.CLUSTER, CLUSTER_NAME)
# The options of kafka-acls and `ottla acl` that name resources.
RESOURCE_TYPES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "delegation-token": ResourceType.DELEGATION_TOKEN,
    "user-principal": ResourceType.USER,
}


class AclRequestError(ValueError):
    """The parts of a request contradict each other, or one is missing."""


@dataclass(frozen=True, slots=True)
class AclRequest:
    """The names as they were typed; operations have Kafka's names without underscores."""

    resources: tuple[tuple[ResourceType, str], ...] = ()
    pattern_type: PatternType = PatternType.LITERAL
    is_for_cluster: bool = False
    operations: tuple[str, ...] = ()
    allow_principals: tuple[str, ...] = ()
    deny_principals: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    deny_hosts: tuple[str, ...] = ()
    is_for_producer: bool = False
    is_for_consumer: bool = False
    is_idempotent: bool = False


def patterns_of(request: AclRequest) -> list[ResourcePattern]:
    """Return the patterns without repetition; an empty list if no resource is named."""
    patterns = [
        ResourcePattern(resource_type, name.strip(), request.pattern_type)
        for resource_type, name in request.resources
    ]
    needs_cluster = request.is_for_cluster or request.is_idempotent
    if request.pattern_type is PatternType.LITERAL and needs_cluster:
        patterns.append(CLUSTER)
    return list(dict.fromkeys(patterns))
