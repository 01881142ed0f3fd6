"""Bugs planted in the local engine: the simulation must find each of them."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pytest

from ottla.client.group.identities import Identity
from ottla.client.records import TopicPartition
from ottla.streams.local.inputs import PartitionReader
from ottla.streams.local.running import Offsets, RunningTask
from ottla.streams.local.sending import output
from ottla.streams.local.sending.output import TaskOutput
from ottla.streams.local.worker import TaskWorker
from tests.sim.streams.groups import SimMember
from tests.sim.streams.simulation import play


def commit_offsets_first(patch: pytest.MonkeyPatch) -> None:
    """Offsets are committed before the records of changelogs and outputs are written."""
    commit = TaskOutput.commit

    def hasty(
        self: TaskOutput, group_id: str, identity: Identity, offsets: Offsets, plain: Any
    ) -> None:
        if offsets:
            plain(offsets)
        commit(self, group_id, identity, {}, plain)

    patch.setattr(TaskOutput, "commit", hasty)


def restore_uncommitted_records(patch: pytest.MonkeyPatch) -> None:
    """State is restored from open and aborted transactions, too."""
    begin = PartitionReader.__init__

    def careless(
        self: PartitionReader, ports: Any, properties: Any, group_id: str, *, is_committed: bool
    ) -> None:
        is_input = "-" not in group_id
        begin(self, ports, properties, group_id, is_committed=is_committed and is_input)

    patch.setattr(PartitionReader, "__init__", careless)


def commit_as_no_member(patch: pytest.MonkeyPatch) -> None:
    """The offsets of a transaction are sent without the member: a zombie is not fenced."""
    encode = output.encode_metadata
    patch.setattr(output, "encode_metadata", lambda group_id, _: encode(group_id, Identity()))


def revoke_without_commit(patch: pytest.MonkeyPatch) -> None:
    """Tasks that move to another worker are closed before their commit."""
    take_over = vars(TaskWorker)["_take_over"]

    def hasty(self: TaskWorker, partitions: list[TopicPartition]) -> None:
        vars(self)["_commit"] = lambda: None
        try:
            take_over(self, partitions)
        finally:
            del vars(self)["_commit"]

    patch.setattr(TaskWorker, "_take_over", hasty)


def keep_tasks_as_a_new_member(patch: pytest.MonkeyPatch) -> None:
    """A worker that the group removes while it joins keeps its tasks, and becomes a new member."""
    join = SimMember.join
    patch.setattr(SimMember, "join", lambda self, topics, *, is_owner=False: join(self, topics))


def process_without_waiting(patch: pytest.MonkeyPatch) -> None:
    """A task does not wait for the records of its other partitions."""
    patch.setattr(RunningTask, "is_ready", lambda self: True)


class PlantedBug(NamedTuple):
    """A bug, the cases that can find it, and the guarantee that it breaks."""

    plant: Callable[[pytest.MonkeyPatch], None]
    cases: tuple[str, ...]
    seed: int
    is_exactly_once: bool = True


PLANTED = {
    "commit_offsets_first": PlantedBug(commit_offsets_first, ("tails",), 17, is_exactly_once=False),
    "restore_uncommitted_records": PlantedBug(restore_uncommitted_records, ("tails",), 1),
    "commit_as_no_member": PlantedBug(commit_as_no_member, ("rekeyed",), 13),
    "revoke_without_commit": PlantedBug(revoke_without_commit, ("tails",), 2),
    "keep_tasks_as_a_new_member": PlantedBug(keep_tasks_as_a_new_member, ("tails",), 14),
    "process_without_waiting": PlantedBug(process_without_waiting, ("outer_joined",), 1),
}


def first_complaint(bug: PlantedBug, seeds: Iterable[int]) -> str:
    """Return the first complaint about a bug, with its case and seed; empty if no seed finds it."""
    with pytest.MonkeyPatch.context() as patch:
        bug.plant(patch)
        for seed in seeds:
            for case in bug.cases:
                run = play(case, seed, is_exactly_once=bug.is_exactly_once)
                if run.complaint:
                    return f"{case} {seed}: {run.complaint}"
    return ""
