"""`kafka-streams-groups --delete` and `--delete-offsets`."""

from collections.abc import Mapping, Sequence

from ottla.client.brokers import Brokers
from ottla_scripts.flags import Options
from ottla_scripts.groups import kinds
from ottla_scripts.groups.deletion import choose, delete_and_print
from ottla_scripts.groups.streams.description import KIND, committed_offsets
from ottla_scripts.groups.streams.internal_topics import delete_topics, internal_topics
from ottla_scripts.java_errors import java_exception
from ottla_scripts.printing import as_json, out


def delete_groups(brokers: Brokers, options: Options) -> None:
    """Delete groups, optionally with their internal topics, and report what was not deleted."""
    names, failed = kinds.deletable(brokers, options, KIND)
    topics: dict[str, list[str]] = {}
    if "delete-all-internal-topics" in options:
        # The names come from the groups' topologies.
        listed = {name: internal_topics(brokers, name) for name in names}
        topics = {name: rows for name, rows in listed.items() if rows}
    deletion = kinds.delete(brokers, names, failed)
    errors: dict[str, str] = {}
    for name in deletion.deleted:
        undeleted = delete_topics(brokers, topics.get(name, ()))
        if undeleted:
            for topic in undeleted:
                out(f"Failed to delete internal topic: {topic}")
            errors[name] = java_exception(next(iter(undeleted.values())))
    if options.is_json:
        as_json(
            {
                "deleted": deletion.deleted,
                "failed": deletion.failed,
                "internal_topics": topics,
                "internal_topic_errors": errors,
            }
        )
        return
    kinds.print_deletion(KIND.name, deletion, nothing="''", end=".")
    if topics and deletion.deleted:
        _print_topics([name for name in deletion.deleted if name in topics], errors)


def _print_topics(groups: Sequence[str], errors: Mapping[str, str]) -> None:
    if not errors:
        listed = ", ".join(f"'{name}'" for name in groups)
        out(
            f"Deletion of associated internal topics of the streams groups ({listed}) was successful."
        )
        return
    out("Deletion of some associated internal topics failed:")
    for name, text in errors.items():
        out(f"* Internal topics of the streams group '{name}' could not be deleted due to: {text}")


def delete_offsets(brokers: Brokers, options: Options) -> None:
    """Delete committed offsets of input topics, and show the result for each partition."""
    group = options["group"]
    if "all-input-topics" in options:
        keys = list(committed_offsets(brokers, group, has_repartition=False))
        delete_and_print(brokers, options, group, keys, {})
    else:
        chosen = choose(brokers, options.all("input-topic"))
        delete_and_print(brokers, options, group, *chosen)
