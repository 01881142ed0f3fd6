"""`ottla cluster health`: the problems of a cluster, with remedies; the exit code is 1 if there are
any.
"""

from collections.abc import Iterator, Sequence

import click

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client.admin import cluster, configs, replicas, topics
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.output import Output

_SHOWN = 5
# A broker that has just died is in the metadata until its session ends: to wait for it is useless.
_PATIENCE_S = 2.0
HealthRow = dict[str, str]


@click.command("health")
@options.connected
def command(brokers: Brokers, output: Output) -> int:
    """Check brokers, leaders, replicas and log directories.

    The exit code is 1 if a check fails, else 0.
    """
    described = cluster.describe_cluster(brokers)
    listed = topics.list_topics(brokers)
    rows = [
        *_brokers(described, listed),
        *_partitions(brokers, listed),
        *_directories(brokers, described),
    ]
    output.findings(rows)
    return 1 if any(row["state"] == "fail" for row in rows) else 0


def _brokers(
    described: cluster.ClusterDescription, listed: Sequence[topics.Topic]
) -> Iterator[HealthRow]:
    running = {item.node_id for item in described.brokers}
    if described.controller_id in running:
        yield _row("ok", "controller", f"broker {described.controller_id}")
    else:
        yield _row("fail", "controller", "no controller is elected", "look at the brokers' logs")
    named = {broker for topic in listed for row in topic.partitions for broker in row.replicas}
    down = sorted(named - running)
    if down:
        names = ", ".join(map(str, down))
        yield _row("fail", "brokers", f"not running, but have replicas: {names}", "start them, or move their replicas with `ottla cluster move`")  # fmt: skip
    else:
        yield _row("ok", "brokers", f"{len(running)} running")


def _partitions(brokers: Brokers, listed: Sequence[topics.Topic]) -> Iterator[HealthRow]:
    rows = [(topic.name, row) for topic in listed for row in topic.partitions]
    leaderless = [f"{name}-{row.partition}" for name, row in rows if row.leader < 0]
    behind = [f"{name}-{row.partition}" for name, row in rows if len(row.isr) < len(row.replicas)]
    minimum = {topic.name: _minimum_isr(brokers, topic.name) for topic in listed if any(
        len(row.isr) < len(row.replicas) for row in topic.partitions
    )}  # fmt: skip
    few = [f"{name}-{row.partition}" for name, row in rows if len(row.isr) < minimum.get(name, 0)]
    moved = [
        f"{name}-{row.partition}"
        for name, row in rows
        if row.leader >= 0 and row.replicas and row.leader != row.replicas[0]
    ]
    yield _listed("fail", "leaders", leaderless, "without a leader", "start a broker of their ISR")
    yield _listed("fail", "minimum ISR", few, "below min.insync.replicas: acks=all is rejected", "start the brokers of their replicas")  # fmt: skip
    yield _listed("fail", "replicas", behind, "under-replicated", "wait for followers, or look at their logs")  # fmt: skip
    yield _listed("warn", "preferred", moved, "not led by the preferred replica", "elect them with `ottla cluster elect --all --execute`")  # fmt: skip


def _minimum_isr(brokers: Brokers, topic: str) -> int:
    resource = configs.Resource(configs.ResourceType.TOPIC, topic)
    try:
        entries = configs.describe_config(brokers, resource, names=["min.insync.replicas"])
    except ApiError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        return 0
    return next((int(entry.value) for entry in entries if entry.value), 1)


def _directories(brokers: Brokers, described: cluster.ClusterDescription) -> Iterator[HealthRow]:
    bad: list[str] = []
    count = 0
    brokers.timeout_s = min(brokers.timeout_s, _PATIENCE_S)
    for item in described.brokers:
        try:
            directories = replicas.describe_log_dirs(brokers, item.node_id)
        except OttlaError as error:
            bad.append(f"broker {item.node_id}: {error}")
            continue
        count += len(directories)
    if bad:
        yield _row("fail", "log directories", "; ".join(bad), "start the broker; if a disk has failed, replace it first")  # fmt: skip
    else:
        yield _row("ok", "log directories", f"{count} online")


def _listed(state: str, check: str, names: Sequence[str], problem: str, remedy: str) -> HealthRow:
    if not names:
        fact = problem.partition(":")[0]
        return _row("ok", check, f"none {fact}" if check != "leaders" else "every partition has one")  # fmt: skip
    first_names = ", ".join(names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return _row(state, check, f"{len(names)} {problem}: {first_names}{more}", remedy)


def _row(state: str, check: str, text: str, remedy: str = "") -> HealthRow:
    return {"state": state, "check": check, "found": text, "remedy": remedy}
