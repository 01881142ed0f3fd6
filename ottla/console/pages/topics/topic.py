"""A topic: overview, consumers, partitions, settings, statistics, and the log of a partition.

Not done: progress and cancel of a copy with its records and of statistics; the request waits for
them.
"""

from collections.abc import Mapping
from typing import Any

from ottla.base.errors import ConfigError
from ottla.console.accounts.masked_copies import RecordChoice, copy_masked
from ottla.console.accounts.roles import Role
from ottla.console.history.points import Kind
from ottla.console.model.configs import ConfigKind, ConfigResource, describe_config
from ottla.console.model.groups import list_topic_groups
from ottla.console.model.log_inspector import inspect, read_batches
from ottla.console.model.partitions import elect_leaders, read_map
from ottla.console.model.topics import (
    add_partitions,
    delete_records,
    delete_topic,
    describe_topic,
    empty_topic,
    read_statistics,
)
from ottla.console.page import Action, Done, NotFound, Page, Source, View
from ottla.console.pages.history import history_of
from ottla.console.pages.settings import change_actions, settings_table
from ottla.operations.numbers import INT_MAX, natural_number

_BATCHES = 50
_SCAN_LIMITS = (10_000, 100_000, 1_000_000)


def show_topic(view: View) -> Mapping[str, Any]:
    """Return a topic and the forms of its page."""
    return {
        "topic": _topic(view),
        "detail": describe_topic(view.cluster, _topic(view)),
        **history_of(view, Kind.TOPIC, _topic(view)),
    }


def show_consumers(view: View) -> Mapping[str, Any]:
    """Return the groups that read a topic."""
    return {"topic": _topic(view), "groups": list_topic_groups(view.cluster, _topic(view))}


def show_partitions(view: View) -> Mapping[str, Any]:
    """Return the map of a topic's replicas."""
    return {"topic": _topic(view), "map": read_map(view.cluster, _topic(view))}


def show_settings(view: View) -> Mapping[str, Any]:
    """Return the options of a topic."""
    rows = describe_config(view.cluster, _resource(view))
    return {"topic": _topic(view), **settings_table(view, rows)}


def show_statistics(view: View) -> Mapping[str, Any]:
    """Return statistics of the newest records; they are read only on request, because they are
    many.
    """
    limit = view.query.integer("scan", 0)
    uncommitted = view.query.is_checked("uncommitted")
    statistics = None
    if limit:
        limit = min(limit, _SCAN_LIMITS[-1])
        statistics = read_statistics(
            view.cluster, _topic(view), scan_limit=limit, is_read_committed=not uncommitted
        )
    detail = describe_topic(view.cluster, _topic(view))
    return {
        "topic": _topic(view),
        "detail": detail,
        "statistics": statistics,
        "uncommitted": uncommitted,
        "limits": _SCAN_LIMITS,
        "limit": limit or _SCAN_LIMITS[1],
    }


def show_log(view: View) -> Mapping[str, Any]:
    """Return the log of a partition and some of its batches."""
    partition = _partition(view)
    log = inspect(view.cluster, _topic(view), partition)
    offset = view.query.integer("offset", log.start_offset, least=0)
    batches = read_batches(view.cluster, _topic(view), partition, offset=offset, limit=_BATCHES)
    following = batches[-1].last_offset + 1 if batches else None
    return {
        "topic": _topic(view),
        "log": log,
        "offset": offset,
        "batches": batches,
        "next_offset": following if following and following < log.high_watermark else None,
    }


def read_rates(view: View) -> Mapping[str, Any]:
    """Return the end offsets of a topic, from which the chart has its rate."""
    detail = describe_topic(view.cluster, _topic(view))
    name = view.say("records") + "/s"
    return {"at_ms": view.cluster.now_ms(), "values": {name: sum(detail.end_offsets)}}


def delete(view: View) -> Done:
    """Delete a topic whose name was typed."""
    name = _topic(view)
    change = delete_topic(view.cluster, name, confirmation=view.form.get("confirmation", ""))
    return Done(view.say("Topic {name} is deleted.", name=name), view.url("topics"), change)


def empty(view: View) -> Done:
    """Delete all records of a topic whose name was typed."""
    name = _topic(view)
    change = empty_topic(view.cluster, name, confirmation=view.form.get("confirmation", ""))
    return Done(view.say("Topic {name} is empty.", name=name), change=change)


def trim(view: View) -> Done:
    """Delete the records of a partition before an offset."""
    partition = view.form.integer("partition", least=0, most=INT_MAX)
    offset = view.form.integer("offset", least=0)
    change = delete_records(view.cluster, _topic(view), {partition: offset})
    sentence = view.say("The records before offset {offset} are deleted.", offset=offset)
    return Done(sentence, change=change)


def grow(view: View) -> Done:
    """Increase the number of partitions."""
    total = view.form.integer("total", least=1)
    change = add_partitions(view.cluster, _topic(view), total)
    return Done(view.say("The topic has {total} partitions now.", total=total), change=change)


def copy(view: View) -> Done:
    """Create a topic with the partitions and options of this one, optionally with its records."""
    target = view.form.required("target")
    chosen = RecordChoice.of(
        with_records=view.form.is_checked("with_records"),
        is_read_committed=not view.form.is_checked("uncommitted"),
    )
    change = copy_masked(
        view.cluster, view.reader, view.console.masking, _topic(view), target, chosen
    )
    sentence = view.say("Topic {name} is created.", name=target)
    return Done(sentence, view.url("topics", target), change)


def elect(view: View) -> Done:
    """Elect the preferred leaders of a topic, or of one partition any live replica."""
    name = _topic(view)
    partitions = [(name, row.partition) for row in read_map(view.cluster, name).partitions]
    if view.form.text("partition"):
        partitions = [(name, view.form.integer("partition", least=0, most=INT_MAX))]
    is_unclean = view.form.is_checked("unclean")
    if is_unclean and len(partitions) > 1:
        raise ConfigError("an unclean election needs a partition: it can lose records")
    change = elect_leaders(view.cluster, partitions, unclean=is_unclean)
    return Done(view.say("The leaders are elected."), change=change)


def _topic(view: View) -> str:
    return view.path["topic"]


def _resource(view: View) -> ConfigResource:
    return ConfigResource(ConfigKind.TOPIC, _topic(view))


def _partition(view: View) -> int:
    partition = natural_number(view.path["partition"], INT_MAX)
    if partition is None:
        raise NotFound(f"{view.path['partition']!r} is not the number of a partition")
    return partition


PAGES = (
    Page(
        "/topics/{topic}",
        "topic.html",
        show_topic,
        "topics",
        actions={
            "delete": Action(delete, "topic.delete", "topic"),
            "empty": Action(empty, "topic.empty", "topic"),
            "trim": Action(trim, "topic.delete-records", "topic"),
            "grow": Action(grow, "topic.add-partitions", "topic"),
            "copy": Action(copy, "topic.copy", "topic"),
        },
        refresh_s=5,
    ),
    Page(
        "/topics/{topic}/consumers", "topic_consumers.html", show_consumers, "topics", refresh_s=5
    ),
    Page(
        "/topics/{topic}/partitions",
        "topic_partitions.html",
        show_partitions,
        "topics",
        actions={"elect": Action(elect, "partition.elect-preferred-leader", "topic", Role.ADMIN)},
        refresh_s=5,
    ),
    Page(
        "/topics/{topic}/settings",
        "topic_settings.html",
        show_settings,
        "topics",
        actions=change_actions(ConfigKind.TOPIC, _resource, Role.EDITOR),
    ),
    Page("/topics/{topic}/statistics", "topic_statistics.html", show_statistics, "topics"),
    Page("/topics/{topic}/partitions/{partition}", "topic_log.html", show_log, "topics"),
)
SOURCES = (Source("/topics/{topic}/rates.json", read_rates),)
