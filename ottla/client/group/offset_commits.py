"""Commits of a member (OffsetCommit), and a thread that sends them one after the other."""

import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.user_code import LoggedErrors
from ottla.client.brokers import PASSING, Brokers, is_passing
from ottla.client.errors import Closed, NotReachable, TimedOut
from ottla.client.group.identities import Identity
from ottla.client.records import TopicPartition
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

Offsets = Mapping[TopicPartition, tuple[int, str]]
"""Offsets to commit, with their metadata."""

# Topics have names, and not ids, in all versions up to this one.
_VERSION_MAX = 9
_PAUSE_S = 0.1


def commit_offsets(brokers: Brokers, group_id: str, identity: Identity, offsets: Offsets) -> int:
    """Commit once; return the first error code, or 0. A transient error is an ApiError.

    Raises NotReachable and TimedOut.
    """
    by_topic: dict[str, list[OffsetCommitRequestPartition]] = defaultdict(list)
    for (topic, partition), (offset, metadata) in offsets.items():
        row = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=metadata
        )
        by_topic[topic].append(row)
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=identity.generation,
        member_id=identity.member_id,
        group_instance_id=identity.instance_id,
        topics=[
            OffsetCommitRequestTopic(name=topic, partitions=partitions)
            for topic, partitions in by_topic.items()
        ],
    )
    response = brokers.ask_coordinator(
        group_id, request, OffsetCommitResponse, max_version=_VERSION_MAX
    )
    codes = [row.error_code for topic in response.topics for row in topic.partitions]
    code = next(filter(None, codes), 0)
    if code in PASSING:
        raise ApiError(ErrorCode(code))
    return int(code)


class _Job(NamedTuple):
    offsets: Offsets
    identity: Identity
    deadline: float
    done: "Future[int]"


class CommitThread:
    """Commits offsets of one group in the order of the calls; the first one starts the thread.

    A commit is repeated after transient errors, for `timeout_s` seconds. Those that wait for the
    same answer become one request.
    """

    def __init__(self, brokers: Brokers, group_id: str, timeout_s: float) -> None:
        self._brokers = brokers
        self._group_id = group_id
        self._timeout_s = timeout_s
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._is_started = False
        self._is_closed = threading.Event()

    def commit(self, offsets: Offsets, identity: Identity) -> "Future[int]":
        """Commit after earlier calls; the result is an error code, 0 for none.

        Its errors are those of `commit_offsets`, and Closed.
        """
        job = _Job(offsets, identity, time.monotonic() + self._timeout_s, Future())
        self._jobs.put(job)
        if not self._is_started:
            self._is_started = True
            threading.Thread(target=self._run, name="ottla-commits", daemon=True).start()
        return job.done

    def close(self) -> None:
        """End the thread after the request that it waits for; other commits fail. Idempotent."""
        self._is_closed.set()
        self._jobs.put(None)

    def _run(self) -> None:
        with self._brokers:
            while (first := self._jobs.get()) is not None:
                jobs, following = self._with_following(first)
                self._commit_together(jobs)
                if following is not None:
                    self._commit_together([following])

    def _with_following(self, first: _Job) -> tuple[list[_Job], _Job | None]:
        """Return a job and those of the same member that wait behind it, and the next one."""
        jobs = [first]
        while not self._jobs.empty():
            job = self._jobs.get()
            if job is None:
                self._jobs.put(None)
                break
            if job.identity != first.identity:
                return jobs, job
            jobs.append(job)
        return jobs, None

    def _commit_together(self, jobs: Sequence[_Job]) -> None:
        if len(jobs) == 1:
            self._commit(jobs[0])
            return
        offsets = {key: value for job in jobs for key, value in job.offsets.items()}
        merged = jobs[-1]._replace(offsets=offsets, done=Future())
        self._commit(merged)
        error = merged.done.exception()
        for job in jobs:
            if error is not None:
                job.done.set_exception(error)
            elif merged.done.result():
                # The error of one partition concerns only the commits of that partition.
                self._commit(job)
            else:
                job.done.set_result(0)

    def _commit(self, job: _Job) -> None:
        with LoggedErrors(job.done.set_exception):
            job.done.set_result(self._answer(job))

    def _answer(self, job: _Job) -> int:
        while not self._is_closed.is_set():
            try:
                return commit_offsets(self._brokers, self._group_id, job.identity, job.offsets)
            except (ApiError, NotReachable, TimedOut) as error:
                if not is_passing(error) or time.monotonic() > job.deadline:
                    raise
            self._brokers.forget()
            self._is_closed.wait(_PAUSE_S)
        raise Closed("the consumer was closed before the offsets were committed")
