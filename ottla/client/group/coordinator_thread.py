"""A thread with a connection to a group's coordinator, for the offsets of one consumer."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import NamedTuple, TypeVar

from ottla.base.errors import ApiError
from ottla.base.user_code import LoggedErrors
from ottla.client.brokers import Brokers, is_passing
from ottla.client.errors import Closed, NotReachable, TimedOut
from ottla.client.group.identities import Identity
from ottla.client.group.offset_requests import Offsets, commit_offsets, fetch_offsets
from ottla.client.records import OffsetAndMetadata, TopicPartition

T = TypeVar("T")
_PAUSE_S = 0.1


class _Commit(NamedTuple):
    offsets: Offsets
    identity: Identity
    deadline: float
    done: "Future[int]"


_Job = _Commit | Callable[[], None]


class CoordinatorThread:
    """Commits and looks up offsets of one group in the order of the calls.

    The first call starts the thread. Each is repeated after transient errors, for `timeout_s`
    seconds. Commits that wait for the same response become one request.
    """

    def __init__(
        self, brokers: Brokers, group_id: str, timeout_s: float, *, require_stable: bool = False
    ) -> None:
        self._brokers = brokers
        self._group_id = group_id
        self._timeout_s = timeout_s
        self._require_stable = require_stable
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._is_started = False
        self._is_closed = threading.Event()

    def commit(self, offsets: Offsets, identity: Identity) -> "Future[int]":
        """Commit after earlier calls; the result is an error code, 0 for none.

        It fails with the errors of `commit_offsets`, or with Closed.
        """
        job = _Commit(offsets, identity, self._deadline(), Future())
        self._put(job)
        return job.done

    def committed(
        self, keys: Iterable[TopicPartition]
    ) -> "Future[dict[TopicPartition, OffsetAndMetadata]]":
        """Look up committed offsets after earlier calls; it fails as `fetch_offsets` does."""
        wanted, deadline = list(keys), self._deadline()
        done: Future[dict[TopicPartition, OffsetAndMetadata]] = Future()

        def fetch() -> dict[TopicPartition, OffsetAndMetadata]:
            return fetch_offsets(
                self._brokers, self._group_id, wanted, require_stable=self._require_stable
            )

        self._put(lambda: self._end(fetch, deadline, done))
        return done

    def close(self) -> None:
        """End the thread after the request that it waits for; other calls fail. Idempotent."""
        self._is_closed.set()
        self._jobs.put(None)

    def _deadline(self) -> float:
        return time.monotonic() + self._timeout_s

    def _put(self, job: _Job) -> None:
        self._jobs.put(job)
        if not self._is_started:
            self._is_started = True
            threading.Thread(target=self._run, name="ottla-offsets", daemon=True).start()

    # -- in the thread --------------------------------------------------------------------------

    def _run(self) -> None:
        with self._brokers:
            while (job := self._jobs.get()) is not None:
                following: _Job | None = job
                while following is not None:
                    following = self._do(following)

    def _do(self, job: _Job) -> _Job | None:
        """Do a job, if it is a commit together with those behind it; return the job after it."""
        if not isinstance(job, _Commit):
            job()
            return None
        commits, following = [job], None
        while following is None and not self._jobs.empty():
            following = self._jobs.get()
            if following is None:
                self._jobs.put(None)
                break
            if isinstance(following, _Commit) and following.identity == job.identity:
                commits.append(following)
                following = None
        self._commit_together(commits)
        return following

    def _commit_together(self, commits: Sequence[_Commit]) -> None:
        if len(commits) == 1:
            self._commit(commits[0])
            return
        offsets = {key: value for one in commits for key, value in one.offsets.items()}
        merged = commits[-1]._replace(offsets=offsets, done=Future())
        self._commit(merged)
        error = merged.done.exception()
        for one in commits:
            if error is not None:
                one.done.set_exception(error)
            elif merged.done.result():
                # The error of one partition concerns only the commits of that partition.
                self._commit(one)
            else:
                one.done.set_result(0)

    def _commit(self, one: _Commit) -> None:
        def send() -> int:
            return commit_offsets(self._brokers, self._group_id, one.identity, one.offsets)

        self._end(send, one.deadline, one.done)

    def _end(self, request: Callable[[], T], deadline: float, done: "Future[T]") -> None:
        with LoggedErrors(done.set_exception):
            done.set_result(self._answer(request, deadline))

    def _answer(self, request: Callable[[], T], deadline: float) -> T:
        while not self._is_closed.is_set():
            try:
                return request()
            except (ApiError, NotReachable, TimedOut) as error:
                if not is_passing(error) or time.monotonic() > deadline:
                    raise
            self._brokers.forget()
            self._is_closed.wait(_PAUSE_S)
        raise Closed("the consumer was closed before the coordinator responded")
