"""The course: the list of lessons, and running one of them on a cluster."""

import difflib
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ottla.base.errors import OttlaError
from ottla.base.loading import deferred_module
from ottla.learn.events import Emit, Event
from ottla.learn.lesson import Lesson
from ottla.learn.scenarios import (
    architecture,
    duties,
    elections,
    files,
    followers,
    groups,
    guarantees,
    loads,
    names,
    offsets,
    producing,
    reading,
    replication,
    storage,
    transactions,
)
from ottla.learn.scenarios.defaults import delivery, members, metadata, retention
from ottla.learn.stage import Stage

# Only a lesson that runs needs brokers.
if TYPE_CHECKING:
    from ottla import testing
else:
    testing = deferred_module("ottla.testing")

# Sessions end when a scenario ends them, never because the machine is busy.
OPTIONS: Mapping[str, str] = {
    "zookeeper.session.timeout.ms": "120000",
    "replica.fetch.wait.max.ms": "100",
    "replica.fetch.backoff.ms": "20",
    "auto.leader.rebalance.enable": "false",
    "auto.create.topics.enable": "false",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "offsets.topic.num.partitions": "50",
    "transaction.state.log.num.partitions": "5",
    "log.cleaner.enable": "false",
    "replica.high.watermark.checkpoint.interval.ms": "100",
}
LESSONS: Mapping[str, Lesson] = {
    lesson.name: lesson
    for subject in (
        architecture.SUBJECT,
        names.SUBJECT,
        replication.SUBJECT,
        followers.SUBJECT,
        duties.SUBJECT,
        elections.SUBJECT,
        producing.SUBJECT,
        guarantees.SUBJECT,
        loads.SUBJECT,
        groups.SUBJECT,
        offsets.SUBJECT,
        reading.SUBJECT,
        transactions.SUBJECT,
        storage.SUBJECT,
        files.SUBJECT,
        retention.SUBJECT,
        members.SUBJECT,
        metadata.CONTROLLER,
        metadata.REPLICATION,
        metadata.READING,
        delivery.READING,
        delivery.PRODUCING,
    )
    for lesson in subject.lessons
}


@dataclass(slots=True)
class Report:
    """The events of a lesson in order, and the facts that it observed."""

    events: list[Event] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


def cluster_for(lesson: Lesson) -> "testing.Cluster":
    """Return a cluster for a lesson, not started."""
    return testing.Cluster(lesson.brokers, options={**OPTIONS, **lesson.options})


def play(lesson: Lesson, cluster: "testing.Cluster", emit: Emit | None = None) -> Report:
    """Run a lesson on a running cluster, which is healthy afterwards; `emit` gets each event at
    once.
    """
    report = Report()

    def note(event: Event) -> None:
        report.events.append(event)
        if emit is not None:
            emit(event)

    with ExitStack() as resources:
        stage = Stage(lesson.name, cluster, note, resources)
        try:
            lesson.scenario(stage)
        finally:
            # Before the clients are closed: a consumer that leaves its group needs the coordinator.
            _recover(cluster)
        report.facts = stage.facts
    return report


def find(name: str) -> Lesson:
    """Return a lesson; OttlaError suggests a similar name, and the list, if no lesson has this
    name.
    """
    if name not in LESSONS:
        near = difflib.get_close_matches(name.lower(), LESSONS, 1)
        suggestion = f"did you mean {near[0]!r}? " if near else ""
        raise OttlaError(
            f"there is no lesson {name!r}: {suggestion}`ottla learn --list` lists the lessons"
        )
    return LESSONS[name]


def _recover(cluster: "testing.Cluster") -> None:
    for broker in cluster.brokers:
        if len(cluster.brokers) > 1:
            # First: an isolated broker could not register when it starts.
            cluster.heal(broker)
        if broker not in cluster.live_brokers:
            cluster.restart(broker)
