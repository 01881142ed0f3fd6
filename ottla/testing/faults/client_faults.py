"""Faults that the clients of a test cluster see, as context managers.

    with cluster.faults.errors("Produce", "NOT_LEADER_OR_FOLLOWER", count=2):
        producer.produce("orders", b"4 apples")

Each is limited by `topic`, `partition`, `client_id` and `broker`. A fault ends with its block, or
when `count` requests were affected. Without a fault, brokers handle requests as always.

Not done: a fault by the name of a group; limits of bandwidth.
"""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Protocol, TypedDict, Unpack

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.admin import replicas, topics
from ottla.client.brokers import Brokers
from ottla.testing.broker_thread import BrokerThread
from ottla.testing.cluster_state import found
from ottla.testing.faults.handlers import wrapped
from ottla.testing.faults.requests import ClientFault, Cut, Effect, RequestFilter
from ottla.testing.faults.responses import refuse_without_error
from ottla.wire.api_keys import ApiKey

_MOVE_SECONDS = 30.0


class AffectedRequests(TypedDict, total=False):
    """The requests that a fault affects: of one client, to one broker, for a topic or partition."""

    topic: str
    partition: int
    client_id: str
    broker: int


class FaultyCluster(Protocol):
    """The cluster of which the faults are."""

    def threads(self) -> dict[int, BrokerThread]:
        """Return the threads of the live brokers, by id."""
        ...

    def kill(self, broker: int) -> None:
        """End a broker."""
        ...

    def restart(self, broker: int) -> None:
        """Start a broker."""
        ...

    def admin(self) -> AbstractContextManager[Brokers]:
        """Return the admin client."""
        ...

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the leader of a partition."""
        ...


class ClientFaults:
    """The faults of a cluster; its methods return context managers."""

    def __init__(self, cluster: FaultyCluster) -> None:
        self._cluster = cluster
        self._active: tuple[ClientFault, ...] = ()

    def errors(
        self,
        api: str,
        code: str | int,
        *,
        count: int | None = None,
        **only: Unpack[AffectedRequests],
    ) -> AbstractContextManager[ClientFault]:
        """Let requests of an API fail with an error, without effect: `errors("Produce", 19)`.

        `api` and `code` are Kafka's names, or numbers of codes. All parts of an affected request
        have the error, and the other requests succeed. Raises ValueError for unknown names.
        """
        key = api_of(api)
        refuse_without_error(key)
        requests = RequestFilter(api=key, **only)
        return self._in_effect(ClientFault(requests, Effect(code=code_of(code)), count))

    def latency(
        self,
        seconds: float,
        *,
        api: str | None = None,
        count: int | None = None,
        **only: Unpack[AffectedRequests],
    ) -> AbstractContextManager[ClientFault]:
        """Let requests wait before they are handled; by topic and partition, a slow partition."""
        requests = RequestFilter(api=None if api is None else api_of(api), **only)
        return self._in_effect(ClientFault(requests, Effect(delay_seconds=seconds), count))

    def cut_connections(
        self,
        *,
        api: str | None = None,
        count: int | None = None,
        is_handled: bool = False,
        **only: Unpack[AffectedRequests],
    ) -> AbstractContextManager[ClientFault]:
        """Close the connection instead of a response.

        With `is_handled` the request takes effect first: the client cannot know that.
        """
        requests = RequestFilter(api=None if api is None else api_of(api), **only)
        cut = Cut.AFTER if is_handled else Cut.BEFORE
        return self._in_effect(ClientFault(requests, Effect(cut=cut), count))

    @contextmanager
    def full_disk(self, broker: int) -> Iterator[None]:
        """Let the writes of a broker fail: its log directory goes offline, as in Kafka.

        After the block the disk has space, and the broker is started again.
        """
        thread = self._thread(broker)
        thread.disk.is_full = True
        try:
            yield
        finally:
            thread.disk.is_full = False
            if self._cluster.threads().get(broker) is thread:
                self._cluster.kill(broker)
                self._cluster.restart(broker)

    @contextmanager
    def leader_moved(
        self, topic: str, partition: int = 0, *, to: int | None = None
    ) -> Iterator[int]:
        """Move the leader of a partition to another replica, whose id is yielded, and back.

        Raises OttlaError if the partition has no such replica.
        """
        former = self._replicas_of(topic, partition)
        leader = self._cluster.leader(topic, partition)
        others = [replica for replica in former if replica != leader and to in (None, replica)]
        if not others:
            raise OttlaError(f"{topic}-{partition} has no other replica {to or ''}: {former}.")
        self._move(topic, partition, others[0], former)
        try:
            yield others[0]
        finally:
            self._move(topic, partition, leader, former)

    def started(self, broker: int, thread: BrokerThread) -> None:
        """Let the active faults affect a broker that has started."""
        if self._active:
            self._install(broker, thread)

    def _replicas_of(self, topic: str, partition: int) -> tuple[int, ...]:
        with self._cluster.admin() as brokers:
            return tuple(topics.describe_topic(brokers, topic).partitions[partition].replicas)

    def _move(self, topic: str, partition: int, leader: int, former: tuple[int, ...]) -> None:
        key = (topic, partition)
        order = [leader, *(replica for replica in former if replica != leader)]
        with self._cluster.admin() as brokers:
            replicas.alter_partition_reassignments(brokers, {key: order})
            replicas.elect_leaders(brokers, [key])
        lack = f"{topic}-{partition} is not led by {leader}"
        found(lambda: self._cluster.leader(topic, partition) == leader or None, lack, _MOVE_SECONDS)

    @contextmanager
    def _in_effect(self, fault: ClientFault) -> Iterator[ClientFault]:
        self._active += (fault,)
        self._install_everywhere()
        try:
            yield fault
        finally:
            self._active = tuple(other for other in self._active if other is not fault)
            self._install_everywhere()

    def _install_everywhere(self) -> None:
        for broker, thread in self._cluster.threads().items():
            self._install(broker, thread)

    def _install(self, broker: int, thread: BrokerThread) -> None:
        dispatcher = thread.node.sources.dispatcher
        assert dispatcher is not None
        wrap = partial(wrapped, broker=broker, active=lambda: self._active)
        thread.run(partial(dispatcher.wrap_handlers, wrap if self._active else None))

    def _thread(self, broker: int) -> BrokerThread:
        thread = self._cluster.threads().get(broker)
        if thread is None:
            raise OttlaError(f"Broker {broker} is down: start it with restart({broker}).")
        return thread


def api_of(name: str) -> ApiKey:
    """Return an API by its name in Kafka, such as `OffsetCommit`; ValueError for another name."""
    key = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()
    if key not in ApiKey.__members__:
        raise ValueError(f"there is no API {name!r}: Kafka's names are Produce, Fetch, Metadata, …")
    return ApiKey[key]


def code_of(code: str | int) -> ErrorCode:
    """Return an error by its name in Kafka or its number; ValueError for another one."""
    if isinstance(code, int):
        return ErrorCode(code)
    if code not in ErrorCode.__members__:
        raise ValueError(f"there is no error {code!r}: Kafka's names are NOT_LEADER_OR_FOLLOWER, …")
    return ErrorCode[code]
