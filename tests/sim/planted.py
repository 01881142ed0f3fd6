"""Bugs planted in the broker: the cluster simulation must find each of them.

`PLANTED` names a scenario and a seed that find each bug. After a change of the broker or the
simulation a seed may find it no longer: `python -m tests.sim.planted NAME` searches for another
one.
"""

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster import election
from ottla.cluster.names import GROUP_OFFSETS_TOPIC
from ottla.controller import state
from ottla.controller.loop import Controller
from ottla.controller.planning import isr_changes, planner, shutdown
from ottla.replication import following, leading
from ottla.replication.isr import IsrMachine
from ottla.replication.isr_updates import IsrUpdates
from ottla.replication.partition import Partition
from ottla.server.brokers import remote
from ottla.server.local_broker import LocalBroker
from ottla.server.produce import partition_writer
from ottla.server.produce.admission import Admission
from ottla.server.produce.markers import ReplicaMarkers
from ottla.storage.log.log import Log
from ottla.storage.log.producers import ProducerState
from ottla.testing.sim.cluster.run import RunResult, simulate
from ottla.testing.sim.cluster.scenario import load
from ottla.testing.sim.files import SimFile

SCENARIOS = Path(__file__).parent / "scenarios"
SEEDS_MAX = 500

Plant = Callable[[pytest.MonkeyPatch], None]


def truncate_to_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """A new follower truncates its log to its high watermark, as before KIP-101."""
    begin = following.begin

    def begin_at_high_watermark(partition: Partition, key: Any) -> Any:
        if partition.log.log_end_offset > partition.high_watermark:
            partition.log.truncation.truncate_to(partition.high_watermark)
        return begin(partition, key)

    patch.setattr(following, "begin", begin_at_high_watermark)


def acknowledge_before_replication(patch: pytest.MonkeyPatch) -> None:
    """The response to acks=all is sent when the leader alone has the record."""
    patch.setattr(Partition, "is_acknowledged", lambda self, acks, offset: True)
    patch.setattr(Partition, "acknowledgement", lambda self, acks, offset, seconds: None)


def acknowledge_after_losing_leadership(patch: pytest.MonkeyPatch) -> None:
    """A request that waits when its leader is replaced is acknowledged."""
    wait = Partition.wait_for_acknowledgement

    def forgiving(self: Partition, *arguments: Any) -> "asyncio.Future[ErrorCode]":
        inner = wait(self, *arguments)
        outer: asyncio.Future[ErrorCode] = inner.get_loop().create_future()

        def settle(done: "asyncio.Future[ErrorCode]") -> None:
            if done.cancelled():
                outer.cancel()
            elif not outer.done():
                code = done.result()
                is_lost = code is ErrorCode.NOT_LEADER_OR_FOLLOWER
                outer.set_result(ErrorCode.NONE if is_lost else code)

        inner.add_done_callback(settle)
        return outer

    patch.setattr(Partition, "wait_for_acknowledgement", forgiving)


def ignore_divergence(patch: pytest.MonkeyPatch) -> None:
    """A leader does not compare the epoch of a follower's last record with its own log."""
    patch.setattr(leading, "divergence", lambda *arguments: None)


def accept_old_leader_epochs(patch: pytest.MonkeyPatch) -> None:
    """A replica applies partition states older than its own; only a controller of an earlier term
    sends some.
    """
    apply = Partition.apply

    def apply_anything(self: Partition, new: Any) -> bool:
        self.leader_epoch = min(self.leader_epoch, new.leader_epoch - 1)
        self.partition_epoch = min(self.partition_epoch, new.partition_epoch)
        return apply(self, new)

    patch.setattr(Partition, "apply", apply_anything)
    accept_stale_controllers(patch)


def accept_stale_controllers(patch: pytest.MonkeyPatch) -> None:
    """Brokers accept notices, and the tree accepts writes, of a controller whose term is over."""

    def check_nothing(self: LocalBroker, fence: Any) -> None:
        self._controller_epoch = max(self._controller_epoch, fence.controller_epoch)

    async def write_unchecked(session: Any, term: Any, operations: Sequence[Any]) -> list[Any]:
        results: list[Any] = await session.multi(operations)
        return results

    patch.setattr(LocalBroker, "_check", check_nothing)
    patch.setattr(state, "write", write_unchecked)


def accept_old_leaders(patch: pytest.MonkeyPatch) -> None:
    """A controller stores the ISR that a leader of an earlier epoch proposes."""
    refusal = isr_changes._refusal

    def refuse_unless_old(known: Any, request: Any, eligible: Any) -> ErrorCode:
        if request.leader_epoch < known.leader_epoch:
            return ErrorCode.NONE
        return refusal(known, request, eligible)

    patch.setattr(isr_changes, "_refusal", refuse_unless_old)


def accept_zombie_producers(patch: pytest.MonkeyPatch) -> None:
    """A leader accepts batches of a transaction that the coordinator has ended, and of an epoch of
    the producer that it has replaced.
    """
    check = ProducerState.check

    def check_unless_old(self: ProducerState, header: Any, **words: Any) -> Any:
        producer = self.producers.get(header.producer_id)
        is_old = producer is not None and header.producer_epoch < producer.epoch
        return None if is_old else check(self, header, **words)

    patch.setattr(ProducerState, "check", check_unless_old)
    patch.setattr(Admission, "_decide", lambda self, write: {})


def skip_fsync(patch: pytest.MonkeyPatch) -> None:
    """Logs are never synced, although their topics flush before an acknowledgement."""
    sync = SimFile.sync
    patch.setattr(SimFile, "sync", lambda self: None if self.path.endswith(".log") else sync(self))


def count_unflushed_records(patch: pytest.MonkeyPatch) -> None:
    """With flush.on.ack, the leader uses the end of its log instead of its durable end for the high
    watermark.
    """
    advance = Partition.advance

    def advance_to_end(self: Partition) -> bool:
        known, self.log.recovery_point = self.log.recovery_point, self.log.log_end_offset
        try:
            return advance(self)
        finally:
            self.log.recovery_point = known

    patch.setattr(Partition, "advance", advance_to_end)


def lose_producer_state_on_restart(patch: pytest.MonkeyPatch) -> None:
    """A log is opened without the sequence numbers of its producers."""
    patch.setattr(
        "ottla.storage.log.recovery._Loading._load_producers",
        lambda self, start, end: ProducerState(),
    )


def forget_producers_while_following(patch: pytest.MonkeyPatch) -> None:
    """A follower does not keep sequence numbers, so that duplicates are written after a fail-over."""
    append = Log.append_as_follower

    def append_only(self: Log, records: Any) -> Any:
        note, self._note_producer = self._note_producer, lambda *_: None  # type: ignore[method-assign]
        try:
            return append(self, records)
        finally:
            self._note_producer = note  # type: ignore[method-assign]

    patch.setattr(Log, "append_as_follower", append_only)


def skip_the_duplicate_check(patch: pytest.MonkeyPatch) -> None:
    """Every batch of an idempotent producer is written."""
    patch.setattr(ProducerState, "check", lambda self, header, **words: None)


def commit_offsets_before_replication(patch: pytest.MonkeyPatch) -> None:
    """A coordinator responds when its records are in its own log."""

    def append_only(target: Partition, encoded: bytearray) -> "asyncio.Future[int]":
        info = target.append_as_leader(encoded, acks=-1, from_client=False)
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        done.set_result(info.last_offset)
        return done

    patch.setattr(partition_writer, "_append", append_only)


def shrink_the_isr_alone(patch: pytest.MonkeyPatch) -> None:
    """A leader removes members without the controller, which may still elect them."""

    def decide(self: IsrUpdates, partition: Partition, new_isr: Collection[int]) -> None:
        assert partition.isr is not None
        partition.isr.isr = frozenset(new_isr)
        partition.advance()
        partition.changed()

    patch.setattr(IsrUpdates, "_propose", decide)
    patch.setattr(IsrMachine, "has_enough_replicas", lambda self, least: True)


def let_laggards_join_the_isr(patch: pytest.MonkeyPatch) -> None:
    """A follower joins as soon as it fetches, and does not count for the high watermark before."""
    patch.setattr(
        IsrMachine,
        "replicas_to_join",
        lambda self, start: frozenset(
            key for key, item in self.followers.items()
            if key not in self.isr and item.log_end_offset >= 0
        ),
    )  # fmt: skip


def commit_everything_as_follower(patch: pytest.MonkeyPatch) -> None:
    """A follower takes the end of its log for the high watermark, and serves that when it leads."""

    def advance(partition: Partition, leader_high_watermark: int) -> None:
        partition.high_watermark = partition.log.high_watermark = partition.log.log_end_offset

    patch.setattr(following, "advance_high_watermark", advance)


def elect_lagging_replicas(patch: pytest.MonkeyPatch) -> None:
    """Any live replica may lead, although unclean elections are not enabled."""
    elect = election.elect_for_offline
    patch.setattr(
        election,
        "elect_for_offline",
        lambda *arguments, allow_unclean=False: elect(*arguments, allow_unclean=True),
    )


def elect_before_brokers_return(patch: pytest.MonkeyPatch) -> None:
    """The controller plans elections before it adds the brokers of the same event, so that the last
    in-sync replica returns too late.
    """
    plan = planner.plan_brokers

    def plan_in_two_steps(image: Any, after: Any, *arguments: Any) -> Any:
        change = planner.compare_brokers(image.brokers, after)
        known = {key: after[key] for key in after.keys() - change.registered}
        return plan(plan(image, known, *arguments), after, *arguments)

    patch.setattr(planner, "plan_brokers", plan_in_two_steps)


def ignore_enabled_unclean_elections(patch: pytest.MonkeyPatch) -> None:
    """The controller reads unclean.leader.election.enable only when brokers change."""
    patch.setattr(Controller, "unclean_elections_enabled", lambda self, topic: None)


def show_uncommitted_records(patch: pytest.MonkeyPatch) -> None:
    """Consumers read up to the end of the log."""
    fetch = Partition.fetch

    def fetch_everything(self: Partition, *arguments: Any, **options: Any) -> Any:
        known, self.high_watermark = self.high_watermark, self.log.log_end_offset
        try:
            return fetch(self, *arguments, **options)
        finally:
            self.high_watermark = known

    patch.setattr(Partition, "fetch", fetch_everything)


def overlook_restarts_of_brokers(patch: pytest.MonkeyPatch) -> None:
    """A broker that registers again before its session ends keeps its leaderships and its place in
    the ISR.
    """
    compare = planner.compare_brokers

    def compare_ids(before: Any, after: Any) -> planner.BrokerChange:
        return planner.BrokerChange(
            compare(before, after).registered, frozenset(before.keys() - after.keys())
        )

    patch.setattr(planner, "compare_brokers", compare_ids)
    overlook_restarts_between_terms(patch)


def overlook_restarts_between_terms(patch: pytest.MonkeyPatch) -> None:
    """A new controller does not see which brokers have restarted since the last decision."""
    load = state.load_topics

    async def load_only(*arguments: Any) -> state.StoredTopics:
        return state.StoredTopics((await load(*arguments)).topics, set())

    patch.setattr(state, "load_topics", load_only)
    _notice_no_ends(patch)


def _notice_no_ends(patch: pytest.MonkeyPatch) -> None:
    """Leave the end of a process unnoticed until its session ends, as Apache Kafka's controller
    does.

    Otherwise a broker has left before it can register again, and no restart can be overlooked.
    """

    async def wait_for_ever(*arguments: Any, **options: Any) -> None:
        await asyncio.get_running_loop().create_future()

    patch.setattr(remote, "wait_until_gone", wait_for_ever)


def empty_the_isr(patch: pytest.MonkeyPatch) -> None:
    """A broker that stops leaves the ISR even if it is the last member."""
    without = shutdown._without

    def without_anything(partition: Any, image: Any, broker_id: int, leaving: Any) -> Any:
        after = without(partition, image, broker_id, leaving)
        if after is partition and partition.isr == (broker_id,) and partition.leader != broker_id:
            return replace(partition, isr=(), leader_epoch=partition.leader_epoch + 1)
        return after

    patch.setattr(shutdown, "_without", without_anything)


def never_truncate(patch: pytest.MonkeyPatch) -> None:
    """A follower keeps the records that its leader lacks."""

    async def nothing(partition: Partition, offset: int) -> None:
        """Leave the log as it is."""

    patch.setattr(following, "truncate", nothing)


def write_markers_twice(patch: pytest.MonkeyPatch) -> None:
    """A marker is written again a moment later, in the middle of the producer's next transaction."""
    write = ReplicaMarkers._write_one

    def write_twice(self: ReplicaMarkers, marker: Any, topic: str, number: int) -> Any:
        def again() -> None:
            with contextlib.suppress(ApiError):
                encoded = partition_writer.encode_marker(marker, self._clock.time_ms())
                target = self._replicas.get(topic, number)
                target.append_as_leader(encoded, acks=-1, from_client=False)

        if topic != GROUP_OFFSETS_TOPIC:
            asyncio.get_running_loop().call_later(0.15, again)
        return write(self, marker, topic, number)

    patch.setattr(ReplicaMarkers, "_write_one", write_twice)


def show_open_transactions(patch: pytest.MonkeyPatch) -> None:
    """Consumers of committed records read up to the high watermark."""
    patch.setattr(Log, "last_stable_offset", lambda self, high_watermark: high_watermark)


def forget_aborted_transactions(patch: pytest.MonkeyPatch) -> None:
    """A fetch response does not list the aborted transactions that it contains."""
    patch.setattr(Log, "aborted_transactions", lambda self, start, end: [])


class PlantedBug(NamedTuple):
    """A bug, and a run that finds it: a problem of that run contains `shows`."""

    plant: Plant
    scenario: str
    seed: int
    shows: str = ""


PLANTED: dict[str, PlantedBug] = {
    item.plant.__name__: item
    for item in (
        PlantedBug(truncate_to_high_watermark, "laggards", 0),
        PlantedBug(acknowledge_before_replication, "deaths", 5),
        PlantedBug(acknowledge_after_losing_leadership, "network", 0),
        PlantedBug(ignore_divergence, "deaths", 4),
        PlantedBug(accept_old_leader_epochs, "successors", 11),
        PlantedBug(accept_stale_controllers, "successors", 46, "controller epoch"),
        PlantedBug(accept_old_leaders, "controllers", 4),
        PlantedBug(accept_zombie_producers, "network", 208, "fractured transaction"),
        PlantedBug(skip_fsync, "power", 0),
        PlantedBug(count_unflushed_records, "blackouts", 0, "durable"),
        PlantedBug(lose_producer_state_on_restart, "deaths", 2),
        PlantedBug(forget_producers_while_following, "deaths", 2),
        PlantedBug(skip_the_duplicate_check, "network", 0, "duplicate"),
        PlantedBug(commit_offsets_before_replication, "deaths", 8),
        PlantedBug(shrink_the_isr_alone, "network", 0),
        PlantedBug(let_laggards_join_the_isr, "laggards", 0, "lacks committed records"),
        PlantedBug(commit_everything_as_follower, "laggards", 5),
        PlantedBug(elect_lagging_replicas, "deaths", 2),
        PlantedBug(elect_before_brokers_return, "returns", 0, "committed was"),
        PlantedBug(ignore_enabled_unclean_elections, "absences", 0, "no leader"),
        PlantedBug(show_uncommitted_records, "network", 2),
        PlantedBug(overlook_restarts_of_brokers, "unflushed", 0),
        PlantedBug(overlook_restarts_between_terms, "unflushed", 3),
        PlantedBug(empty_the_isr, "unreplicated", 6, "isr ()"),
        PlantedBug(never_truncate, "deaths", 3),
        PlantedBug(write_markers_twice, "deaths", 0),
        PlantedBug(show_open_transactions, "deaths", 0),
        PlantedBug(forget_aborted_transactions, "deaths", 0, "aborted read"),
    )
}


def play(bug: PlantedBug, seed: int) -> RunResult:
    """Run one seed of the bug's scenario with the bug planted."""
    with pytest.MonkeyPatch.context() as patch:
        bug.plant(patch)
        return simulate(load(SCENARIOS / f"{bug.scenario}.toml"), seed)


def finding(bug: PlantedBug, result: RunResult) -> str:
    """Return the problem that shows the bug; empty if no problem was found.

    An unexpected exception does not count: the bug may have been planted in code that has changed.
    """
    if result.task_failures:
        return ""
    return next((text for text in result.problems if bug.shows in text), "")


def search(name: str, seeds: range) -> None:
    """Print the first seed that finds a bug."""
    bug = PLANTED[name]
    for seed in seeds:
        result = finding(bug, play(bug, seed))
        if result:
            sys.stdout.write(f"{name} {bug.scenario} {seed}: {result[:200]}\n")
            sys.stdout.flush()
            return
    sys.stdout.write(f"{name} {bug.scenario}: not found\n")
    sys.stdout.flush()


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    for argument in sys.argv[1:] or PLANTED:
        search(argument, range(SEEDS_MAX))
