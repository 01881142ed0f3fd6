"""A group of thirty members that join, leave, are killed and paused for longer than a session."""

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import OttlaError
from ottla.client.admin import groups, offsets
from ottla.client.errors import NotReachable, TimedOut
from tests.process.broker_cluster import BrokerCluster, campaign, wait
from tests.process.load import Load

pytestmark = pytest.mark.slow
TOPIC, GROUP = "orders", "churn"
PARTITIONS, MEMBERS = 60, 30
_SESSION_MS = 10_000
_STEPS = int(os.environ.get("OTTLA_CAMPAIGN_STEPS", "24"))
# A rebalance ends when the last member has rejoined, or its session has ended.
_REBALANCE_S = 3 * _SESSION_MS / 1000 + 30
# The sessions of KIP-848, as short as those of classic members.
_BROKER = {
    "group.consumer.min.session.timeout.ms": str(_SESSION_MS),
    "group.consumer.session.timeout.ms": str(_SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "3000",
    "group.consumer.heartbeat.interval.ms": "3000",
}
_CLASSIC = {"group.protocol": "classic", "session.timeout.ms": _SESSION_MS}
PROTOCOLS = {
    "eager": {**_CLASSIC, "partition.assignment.strategy": "range"},
    "cooperative": {**_CLASSIC, "partition.assignment.strategy": "cooperative-sticky"},
    # librdkafka waits for a response as long as the interval of its heartbeats, and then repeats
    # the request without its partitions. If the lost response has taken a partition away, the
    # member keeps it until its rebalance time-out.
    "consumer": {"group.protocol": "consumer", "max.poll.interval.ms": 20_000},
}


class ChurningMember:
    """A process of `tests.process.group_member`, and the times at which it was stopped."""

    def __init__(self, path: Path, bootstrap: str, config: Mapping[str, object]) -> None:
        self._path = path
        # The times of the kill, or of pauses, after which others may own its partitions.
        self.stops: list[float] = []
        words = ("-m", "tests.process.group_member", bootstrap, TOPIC, GROUP, json.dumps(config))
        with path.open("wb") as out:
            self.process = subprocess.Popen([sys.executable, *words], stdout=out)

    def events(self) -> list[dict[str, Any]]:
        """Return the complete lines so far."""
        lines = self._path.read_text().rpartition("\n")[0].splitlines()
        return [json.loads(line) for line in lines]

    def kill(self) -> None:
        """End it with SIGKILL."""
        self.stops.append(time.monotonic())
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """Stop it with SIGSTOP."""
        self.stops.append(time.monotonic())
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue it."""
        self.process.send_signal(signal.SIGCONT)

    def leave(self) -> None:
        """End it with SIGTERM: it leaves the group."""
        self.process.terminate()
        self.process.wait(_REBALANCE_S)


class ChurningGroup:
    """The members of one protocol, and those that have ended."""

    def __init__(self, cluster: BrokerCluster, folder: Path, config: Mapping[str, object]) -> None:
        self._cluster = cluster
        self._folder = folder
        self._config = config
        self._random = random.Random(int(os.environ.get("OTTLA_SEED", "1")))
        self.members: list[ChurningMember] = []
        self.ended: list[ChurningMember] = []
        self.committed: dict[int, int] = {}
        self.rebalances: list[tuple[str, float]] = []

    def join(self, count: int = 1) -> None:
        """Add members."""
        for _ in range(count):
            path = self._folder / f"member{len(self.members) + len(self.ended)}.json"
            self.members.append(ChurningMember(path, self._cluster.bootstrap, self._config))

    def close(self) -> None:
        """End all members that still run."""
        for member in self.members:
            member.resume()
            member.process.kill()
            member.process.wait()

    def step(self) -> None:
        """Change the group, and wait until all partitions are assigned again."""
        kind = self._random.choice(["join", "leave", "kill", "pause", "several"])
        if kind == "join":
            self.join(2)
        elif kind == "leave":
            self._end(2, ChurningMember.leave)
        elif kind == "kill":
            self._end(2, ChurningMember.kill)
        elif kind == "several":
            self._end(1, ChurningMember.kill)
            self._end(2, ChurningMember.leave)
            self.join(3)
        paused = self._random.sample(self.members, 2) if kind == "pause" else []
        for member in paused:
            member.pause()
        self.settle(kind, len(self.members) - len(paused))
        for member in paused:
            member.resume()
        if paused:
            self.settle("resume")
        self.join(max(0, MEMBERS - len(self.members)))
        self.settle("refill")

    def _end(self, count: int, end: Any) -> None:
        for member in self._random.sample(self.members, count):
            end(member)
            self.members.remove(member)
            self.ended.append(member)

    def settle(self, kind: str, count: int | None = None) -> None:
        """Wait until the group is stable with so many members that own all partitions."""
        expected = len(self.members) if count is None else count
        took = wait(lambda: self._is_settled(expected), f"{kind}: {expected} members", _REBALANCE_S)
        self.rebalances.append((kind, took))
        self.check_committed()

    def _is_settled(self, count: int) -> bool:
        try:
            with self._cluster.admin() as brokers:
                group = groups.describe_group(brokers, GROUP)
        except (OttlaError, NotReachable, TimedOut, OSError):
            return False
        owned = [number for member in group.members for _, number in member.assignment]
        is_whole = sorted(owned) == list(range(PARTITIONS))
        return group.state.lower() == "stable" and len(group.members) == count and is_whole

    def check_committed(self) -> None:
        """Fail if a committed offset is smaller than before, or than one that was acknowledged."""
        acknowledged: dict[int, int] = defaultdict(int, self.committed)
        for member in (*self.members, *self.ended):
            for event in member.events():
                if event["event"] == "committed":
                    for key, offset in event["offsets"].items():
                        acknowledged[int(key)] = max(offset, acknowledged[int(key)])
        with self._cluster.admin(timeout_s=10) as brokers:
            current = offsets.committed_offsets(brokers, GROUP)
        self.committed = {key[1]: value.offset for key, value in current.items()}
        back = {
            number: (offset, self.committed.get(number))
            for number, offset in acknowledged.items()
            if self.committed.get(number, -1) < offset
        }
        assert not back, f"committed offsets went back: {back}"

    def owners(self) -> dict[int, list[tuple[float, float, int]]]:
        """Return from when to when each member owned each partition."""
        result: dict[int, list[tuple[float, float, int]]] = defaultdict(list)
        for number, member in enumerate((*self.members, *self.ended)):
            for partition, start, end in _spans(member):
                end = min([end, *(time for time in member.stops if start < time < end)])
                result[partition].append((start, end, number))
        return result


def _spans(member: ChurningMember) -> Iterator[tuple[int, float, float]]:
    """Yield each partition that a member owned, and from when to when."""
    since: dict[int, float] = {}
    for event in (*member.events(), {"event": "left", "time": time.monotonic()}):
        if event["event"] == "assigned":
            since |= dict.fromkeys(event["partitions"], event["time"])
        elif event["event"] in ("revoked", "lost", "left"):
            for partition in event.get("partitions", list(since)):
                if partition in since:
                    yield partition, since.pop(partition), event["time"]


@campaign
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_group_of_thirty_members_with_churn(tmp_path: Path, protocol: str) -> None:
    """Each record is read, each partition has one owner, and no committed offset goes back."""
    with BrokerCluster(tmp_path, options=_BROKER) as cluster:
        cluster.create_topic(TOPIC, partitions=PARTITIONS)
        group = ChurningGroup(cluster, tmp_path, PROTOCOLS[protocol])
        try:
            with Load(cluster.bootstrap, TOPIC, partitions=PARTITIONS, rate=300) as load:
                group.join(MEMBERS)
                group.settle("start")
                for _ in range(_STEPS):
                    group.step()
            sent = load.sent
            wait(lambda: _is_read(group.committed, sent, group), "all records are committed", 60)
            report(group, protocol)
            check_owners(group)
            check_records(group, sent)
            load.check(cluster.bootstrap)
        finally:
            group.close()


def _is_read(committed: Mapping[int, int], sent: list[int], group: ChurningGroup) -> bool:
    group.check_committed()
    return [group.committed.get(number, 0) for number in range(len(sent))] == sent


def report(group: ChurningGroup, protocol: str) -> None:
    """Print the longest rebalance after each kind of change."""
    longest: dict[str, float] = defaultdict(float)
    for kind, seconds in group.rebalances:
        longest[kind] = max(longest[kind], seconds)
    kinds = ", ".join(f"{kind} {seconds:.1f} s" for kind, seconds in longest.items())
    lost = sum(
        event["event"] == "lost"
        for item in (*group.members, *group.ended)
        for event in item.events()
    )
    print(f"{protocol}: {len(group.rebalances)} rebalances, {lost} lost; longest: {kinds}")


def check_owners(group: ChurningGroup) -> None:
    """Fail if two members owned a partition at the same time, of which none was stopped."""
    for partition, spans in group.owners().items():
        for before, after in itertools.pairwise(sorted(spans)):
            detail = f"partition {partition}: {before}, then {after}"
            assert before[1] <= after[0] or before[2] == after[2], detail


def check_records(group: ChurningGroup, sent: list[int]) -> None:
    """Fail unless the group has read every record."""
    read: dict[int, set[int]] = defaultdict(set)
    for member in (*group.members, *group.ended):
        for event in member.events():
            if event["event"] == "records":
                for key, numbers in event["offsets"].items():
                    read[int(key)].update(numbers)
    for partition, count in enumerate(sent):
        assert read[partition] >= set(range(count)), f"partition {partition}"
