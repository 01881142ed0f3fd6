"""The resource patterns that a command line of `kafka-acls` names."""

from ottla.client.admin.acls import PatternType, ResourcePattern, ResourceType
from ottla.tools.scripts.exits import UsageError
from ottla.tools.scripts.flags import Options

CLUSTER = ResourcePattern(ResourceType.CLUSTER, "kafka-cluster")
_TYPES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "delegation-token": ResourceType.DELEGATION_TOKEN,
    "user-principal": ResourceType.USER,
}


def pattern_type_of(options: Options) -> PatternType:
    """Return the pattern type of the command line; UsageError for an unknown one."""
    text = options["resource-pattern-type"]
    try:
        pattern_type = PatternType[text.upper()]
    except KeyError:
        pattern_type = PatternType.UNKNOWN
    if pattern_type is PatternType.UNKNOWN:
        raise UsageError(
            f"Cannot parse argument '{text}' of option resource-pattern-type", is_parse_error=True
        )
    return pattern_type


def patterns_of(options: Options) -> list[ResourcePattern]:
    """Return the patterns without repetition; an empty list if no resource is named."""
    pattern_type = pattern_type_of(options)
    patterns = [
        ResourcePattern(resource_type, name.strip(), pattern_type)
        for option, resource_type in _TYPES.items()
        for name in options.all(option)
    ]
    if pattern_type is PatternType.LITERAL and ("cluster" in options or "idempotent" in options):
        patterns.append(CLUSTER)
    return list(dict.fromkeys(patterns))
