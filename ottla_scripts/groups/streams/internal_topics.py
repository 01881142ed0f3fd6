"""The internal topics of a streams group, which the script deletes with it."""

from collections.abc import Sequence

from ottla.base.errors import ApiError, OttlaError
from ottla.client.admin.apache.streams_groups import describe_streams_group
from ottla.client.brokers import Brokers
from ottla.operations.changes import change_each
from ottla.operations.topics import delete
from ottla_scripts.groups.running import execution_exception, print_error
from ottla_scripts.groups.streams.description import source_topics
from ottla_scripts.groups.streams.topic_names import is_internal


def internal_topics(brokers: Brokers, group_id: str) -> list[str]:
    """Return the internal topics of a group; print an error for one with an unusual name."""
    try:
        with execution_exception():
            group = describe_streams_group(brokers, group_id)
    except OttlaError as error:
        print_error(f"Retrieving internal topics failed due to {error}")
        return []
    sources = source_topics(group)
    names = [
        topic.name
        for part in group.subtopologies
        for topic in (*part.repartition_source_topics, *part.state_changelog_topics)
        if topic.name not in sources
    ]
    for name in names:
        if not is_internal(name, group_id):
            print_error(
                f"The internal topic '{name}' is not inferred as internal and thus will not be "
                f"deleted with the group '{group_id}'."
            )
    return [name for name in names if is_internal(name, group_id)]


def delete_topics(brokers: Brokers, names: Sequence[str]) -> dict[str, ApiError]:
    """Delete topics, and return an error for each that could not be deleted."""
    return change_each(names, lambda name: delete(brokers, name)).errors
