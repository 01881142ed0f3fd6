"""`ottla replica verify`: compare the replicas of partitions byte by byte."""

from collections.abc import Sequence
from typing import Any

import click

from ottla.client.admin import configs, offsets, topics
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.output import Output, ProgressBar, note
from ottla.tools.replica.comparing import ComparisonRules, Finding, compare, describe
from ottla.tools.replica.reading import Replica

_COLUMNS = ("topic", "partition", "leader", "replicas", "start_offset", "end_offset", "result")
Key = tuple[str, int]


@click.command("verify")
@click.option("--topic", "-t", "names", multiple=True, metavar="TOPIC",
              shell_complete=options.complete_topic,
              help="A topic to verify; may be repeated. By default all topics, internal ones included.")  # fmt: skip
@click.option("--wait", "wait_s", type=options.FiniteRange(min=0), default=10.0, show_default=True,
              metavar="SECONDS",
              help="How long a follower may take to reach the leader's high watermark.")  # fmt: skip
@options.connected
def command(brokers: Brokers, output: Output, names: tuple[str, ...], wait_s: float) -> int:
    """Compare all replicas of each partition, byte by byte, up to the high watermark.

    Reads each replica from its own broker. The exit code is 1 if a replica differs from the
    leader's, is behind, or cannot be read.

    \b
    ottla replica verify
    ottla replica verify --topic orders --output json
    """
    selected = _topics(brokers, names)
    led = [
        (topic.name, row.partition)
        for topic in selected
        for row in topic.partitions
        if row.leader >= 0
    ]
    starts = offsets.list_offsets(brokers, dict.fromkeys(led, offsets.EARLIEST))
    ends = offsets.list_offsets(brokers, dict.fromkeys(led, offsets.LATEST))
    bounds = {key: (starts[key].offset, ends[key].offset) for key in led}
    total = sum(
        (end - start) * (len(row.replicas) - 1)
        for topic in selected
        for row in topic.partitions
        for start, end in [bounds.get((topic.name, row.partition), (0, 0))]
    )
    rows: list[dict[str, Any]] = []
    with ProgressBar("Verifying", total) as progress:
        for topic in selected:
            rules = ComparisonRules(is_compacted=_is_compacted(brokers, topic.name), wait_s=wait_s)
            for row in topic.partitions:
                span = bounds.get((topic.name, row.partition))
                findings = _verify(brokers, topic.name, row, span, rules, progress)
                rows.append(_row(topic.name, row, span, findings))
    output.rows(rows, _COLUMNS, empty="There are no partitions.")
    bad = sum(row["result"] != "identical" for row in rows)
    if bad:
        note(f"{bad} of {len(rows)} partitions have replicas that are not identical.")
    return 1 if bad else 0


def _topics(brokers: Brokers, names: Sequence[str]) -> list[topics.Topic]:
    if names:
        return [topics.describe_topic(brokers, name) for name in dict.fromkeys(names)]
    return topics.list_topics(brokers)


def _is_compacted(brokers: Brokers, topic: str) -> bool:
    resource = configs.Resource(configs.ResourceType.TOPIC, topic)
    entries = configs.describe_config(brokers, resource, names=["cleanup.policy"])
    return any("compact" in (item.value or "") for item in entries)


def _verify(
    brokers: Brokers,
    topic: str,
    row: topics.Partition,
    span: tuple[int, int] | None,
    rules: ComparisonRules,
    progress: ProgressBar,
) -> list[Finding]:
    if span is None:
        return [Finding(row.leader, 0, "is unknown: the partition has no leader")]
    leader = Replica(brokers, row.leader, topic, row.partition)
    followers = (
        Replica(brokers, broker, topic, row.partition)
        for broker in row.replicas
        if broker != row.leader
    )
    compared = (compare(leader, item, span, rules, progress.advance) for item in followers)
    return [finding for finding in compared if finding is not None]


def _row(
    topic: str, row: topics.Partition, span: tuple[int, int] | None, findings: list[Finding]
) -> dict[str, Any]:
    start, end = span or (None, None)
    return {
        "topic": topic,
        "partition": row.partition,
        "leader": row.leader,
        "leader_epoch": row.leader_epoch,
        "replicas": list(row.replicas),
        "isr": list(row.isr),
        "start_offset": start,
        "end_offset": end,
        "result": describe(findings) or "identical",
        "findings": [
            {"broker": item.broker, "offset": item.offset, "problem": item.problem}
            for item in findings
        ],
    }
