"""The brokers of one cluster: one connection to each, and requests routed to the right one.

A request goes to any broker, the controller, a partition leader or a coordinator. `retry` repeats
an attempt while the cluster settles: a new controller, a coordinator that loads, a leader that has
moved. For one thread.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.loading import deferred_module
from ottla.client.bootstrap import Address, bootstrap_text, parse_bootstrap
from ottla.client.connection import Connection, OnRequest, SilentBrokers
from ottla.client.errors import NotReachable, TimedOut, Unsupported
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from ottla.wire.schema import Message

# Only a command that connects to controllers sends this request.
if TYPE_CHECKING:
    from ottla.client.security.options import Security
    from ottla.wire.messages import describe_cluster
else:
    describe_cluster = deferred_module("ottla.wire.messages.describe_cluster")

T = TypeVar("T")
M = TypeVar("M", bound=Message)

# Transient errors. An unknown topic is not one of them: it is a result.
PASSING = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)


class LeaderError(ApiError):
    """A retriable error of a leader that the metadata names: a retry asks the leader of then.

    Even UNKNOWN_TOPIC_OR_PARTITION: the leader does not know yet that it leads the partition.
    """


class CoordinatorError(ApiError):
    """The error of a lookup of the coordinator of `key`, a group or a transactional id."""

    def __init__(self, code: ErrorCode, message: str | None, key: str, *, is_group: bool) -> None:
        super().__init__(code, message)
        self.key, self.is_group = key, is_group


def is_passing(error: Exception) -> bool:
    """Return True for a transient error of a broker, or of the connection to it."""
    if isinstance(error, ApiError):
        return error.code in PASSING
    return isinstance(error, NotReachable | TimedOut)


_PAUSE_S = 0.05
_PAUSE_S_MAX = 1.0
_GROUP_KEY = 0
_TRANSACTION_KEY = 1
# DescribeCluster since version 1: the type of the nodes to describe.
_CONTROLLERS = 2
_SINCE_ENDPOINT_TYPES = 1


class Brokers:
    """Connections to one cluster; a context manager that closes them.

    `timeout_s` bounds each call, and each `retry` as a whole. If no broker has ever responded at an
    address, the call fails at once, because the address is probably wrong; with `is_proven` the
    brokers are known to exist, and the call retries. `security` is None for PLAINTEXT; `settings`
    are the same in options of librdkafka, for callers that move records.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        timeout_s: float = 15.0,
        client_id: str = "ottla",
        is_proven: bool = False,
        security: "Security | None" = None,
    ) -> None:
        self.bootstrap = bootstrap_text(bootstrap)
        self.security = security
        self.settings: Mapping[str, str] = {}
        self.timeout_s = timeout_s
        self.client_id = client_id
        # Called with each request before it is sent, except those that have passwords.
        self.on_request: OnRequest | None = None
        # Several instances may share it.
        self.silence = SilentBrokers(time.monotonic)
        self._is_proven = is_proven
        self._seeds = parse_bootstrap(bootstrap)
        self._connections: dict[Address, Connection] = {}
        self._nodes: dict[int, Address] = {}
        self._is_outdated = False
        self._controller_id = -1
        self._coordinators: dict[tuple[int, str], int] = {}

    def __enter__(self) -> "Brokers":
        """Return itself; connections are opened on first use."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close every connection."""
        self.close()

    def close(self) -> None:
        """Close every connection; idempotent."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def any_connection(self) -> Connection:
        """Return an open connection to some broker, if possible one that responds; NotReachable has
        the error of the last address.
        """
        for connection in self._connections.values():
            if connection.is_open and not self.silence.is_silent(connection.address):
                return connection
        failure: NotReachable | TimedOut | None = None
        for address in sorted(self._addresses(), key=self.silence.is_silent):
            try:
                return self._connect(address)
            except (NotReachable, TimedOut) as error:
                failure = error
        assert failure is not None
        raise failure

    def ask(self, request: Message, response_type: type[M], *, max_version: int | None = None) -> M:
        """Send a request to any broker."""
        return self._call(self.any_connection(), request, response_type, max_version)

    def ask_node(
        self,
        node_id: int,
        request: Message,
        response_type: type[M],
        *,
        max_version: int | None = None,
    ) -> M:
        """Send a request to the broker with this id."""
        return self._call(self._node(node_id), request, response_type, max_version)

    def ask_nodes(
        self,
        requests: Mapping[int, Message],
        response_type: type[M],
        *,
        max_version: int | None = None,
    ) -> dict[int, M]:
        """Send a request to each of these brokers before the first response is read; return the
        responses by broker.

        An error closes the connections, whose other responses are not read.
        """
        # Before a request is sent: a lookup of an address uses these connections, too.
        connections = {node_id: self._node(node_id) for node_id in requests}
        try:
            started = {
                node_id: self._start(connections[node_id], request, response_type, max_version)
                for node_id, request in requests.items()
            }
            return {node_id: receive() for node_id, receive in started.items()}
        except BaseException:
            for connection in connections.values():
                connection.close()
            raise

    def ask_controller(
        self, request: Message, response_type: type[M], *, max_version: int | None = None
    ) -> M:
        """Send a request to the controller; to any broker if the cluster names none (it forwards or
        rejects).
        """
        if self._controller_id < 0:
            self._find_nodes()
        if self._controller_id < 0:
            return self.ask(request, response_type, max_version=max_version)
        return self.ask_node(self._controller_id, request, response_type, max_version=max_version)

    def ask_coordinator(
        self,
        group_id: str,
        request: Message,
        response_type: type[M],
        *,
        max_version: int | None = None,
    ) -> M:
        """Send a request to the coordinator of a group."""
        node_id = self._coordinator(_GROUP_KEY, group_id)
        return self.ask_node(node_id, request, response_type, max_version=max_version)

    def ask_transaction_coordinator(
        self,
        transactional_id: str,
        request: Message,
        response_type: type[M],
        *,
        max_version: int | None = None,
    ) -> M:
        """Send a request to the coordinator of a transactional id."""
        node_id = self.transaction_coordinator(transactional_id)
        return self.ask_node(node_id, request, response_type, max_version=max_version)

    def transaction_coordinator(self, transactional_id: str) -> int:
        """Return the id of the broker that coordinates a transactional id."""
        return self._coordinator(_TRANSACTION_KEY, transactional_id)

    def group_coordinator(self, group_id: str) -> int:
        """Return the id of the broker that coordinates a group."""
        return self._coordinator(_GROUP_KEY, group_id)

    def find_coordinator(self, key: str, *, is_group: bool) -> int:
        """Return the coordinator of a group or a transactional id as the cluster names it now."""
        self._coordinators.clear()
        key_type = _GROUP_KEY if is_group else _TRANSACTION_KEY
        return self.retry(lambda: self._coordinator(key_type, key))

    def _call(
        self,
        connection: Connection,
        request: Message,
        response_type: type[M],
        max_version: int | None,
        timeout_s: float | None = None,
    ) -> M:
        return self._start(connection, request, response_type, max_version, timeout_s)()

    def _start(
        self,
        connection: Connection,
        request: Message,
        response_type: type[M],
        max_version: int | None,
        timeout_s: float | None = None,
    ) -> Callable[[], M]:
        if self.on_request is not None:
            version = connection.version_of(type(request), max_version)
            self.on_request(connection.address, request, version)
        receive = connection.start(
            request, response_type, max_version=max_version, timeout_s=timeout_s or self.timeout_s
        )

        def watched() -> M:
            try:
                response = receive()
            except TimedOut:
                self.silence.on_timeout(connection.address)
                raise
            self.silence.on_response(connection.address)
            return response

        return watched

    def retry(self, attempt: Callable[[], T]) -> T:
        """Return the result of `attempt`, retrying while its errors are transient."""
        deadline = time.monotonic() + self.timeout_s
        pause = _PAUSE_S
        while True:
            try:
                return attempt()
            except (ApiError, NotReachable, TimedOut) as error:
                if not self._is_passing(error) or time.monotonic() + pause > deadline:
                    raise
            self.forget()
            time.sleep(pause)
            pause = min(pause * 2, _PAUSE_S_MAX)

    def forget(self) -> None:
        """Forget the known controller, coordinators and addresses, so that they are looked up
        again.
        """
        self._is_outdated = True
        self._controller_id = -1
        self._coordinators.clear()

    def metadata(
        self,
        topics: Sequence[str | bytes] | None = None,
        *,
        with_operations: bool = False,
        creates: bool = False,
    ) -> MetadataResponse:
        """Return the metadata of these topics (None: of all) and update the brokers.

        Bytes are the id of a topic (KIP-516). `creates` lets the brokers create topics, by their
        option `auto.create.topics.enable`. `with_operations` requests the operations that the user
        is authorized for (KIP-430).
        """
        named = None if topics is None else list(map(_named, topics))
        request = MetadataRequest(
            topics=named,
            allow_auto_topic_creation=creates,
            include_topic_authorized_operations=with_operations,
        )
        response = self._ask_two(request, MetadataResponse)
        self._nodes = {node.node_id: Address(node.host, node.port) for node in response.brokers}
        self._is_outdated = False
        self._controller_id = response.controller_id
        return response

    def topic(
        self, name: str | bytes, *, with_operations: bool = False, creates: bool = False
    ) -> MetadataResponseTopic:
        """Return the metadata of a topic by its name or id; ApiError if it does not exist."""
        response = self.metadata([name], with_operations=with_operations, creates=creates)
        (topic,) = response.topics
        _check_topic(topic, name)
        return topic

    def leaders(self, partitions: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], int]:
        """Return the leader of each partition; ApiError if a topic, partition or leader does not
        exist.
        """
        leaders = self.known_leaders({topic for topic, _ in partitions})
        for topic, index in partitions:
            if (topic, index) not in leaders:
                raise ApiError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"Topic {topic!r} has no partition {index}.",
                )
            if leaders[topic, index] < 0:
                raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{index} has no leader.")
        return {key: leaders[key] for key in partitions}

    def known_leaders(
        self, topics: Collection[str], *, skips_unknown: bool = False
    ) -> dict[tuple[str, int], int]:
        """Return the leader of each partition of these topics, -1 without a leader.

        ApiError if a topic does not exist, unless `skips_unknown`.
        """
        leaders: dict[tuple[str, int], int] = {}
        for row in self.metadata(sorted(topics)).topics if topics else ():
            name = row.name or ""
            if skips_unknown and row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                continue
            _check_topic(row, name)
            for partition in row.partitions:
                leaders[name, partition.partition_index] = partition.leader_id
        return leaders

    def address(self, node_id: int) -> Address:
        """Return the address of the broker with this id, from the latest metadata."""
        if node_id not in self._nodes:
            raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, f"Broker {node_id} is not running.")
        return self._nodes[node_id]

    def node_ids(self) -> list[int]:
        """Return the ids of the brokers that run now."""
        self.retry(self._find_nodes)
        return sorted(self._nodes)

    def require_node(self, node_id: int) -> None:
        """Raise ApiError unless this broker runs now, for which a request to it would wait."""
        running = self.node_ids()
        if node_id not in running:
            listed = ", ".join(map(str, running))
            raise ApiError(
                ErrorCode.BROKER_NOT_AVAILABLE,
                f"Broker {node_id} is not running; there are: {listed}.",
            )

    def _find_nodes(self) -> None:
        self.metadata([])

    def _ask_two(self, request: Message, response_type: type[M]) -> M:
        """Send a request that changes nothing to any broker, and to another one if that is silent.

        Both together have the time of a call.
        """
        connection = self.any_connection()
        others = {*self._addresses()} - {connection.address}
        if all(map(self.silence.is_silent, others)):
            return self._call(connection, request, response_type, None)
        half_s = self.timeout_s / 2
        try:
            return self._call(connection, request, response_type, None, half_s)
        except TimedOut:
            return self._call(self.any_connection(), request, response_type, None, half_s)

    def _addresses(self) -> list[Address]:
        return [*self._seeds, *self._nodes.values()]

    def _is_passing(self, error: ApiError | NotReachable | TimedOut) -> bool:
        if isinstance(error, ApiError):
            return error.code in PASSING or isinstance(error, LeaderError)
        # Without metadata no broker has ever responded: the address is wrong, or all brokers are
        # down.
        return self._is_proven or bool(self._nodes)

    def _node(self, node_id: int) -> Connection:
        if node_id not in self._nodes or self._is_outdated:
            self._find_nodes()
        address = self.address(node_id)
        try:
            return self._connect(address)
        except NotReachable as error:
            if address in self._seeds:
                raise
            raise NotReachable(
                f"{error}: broker {node_id} of {self.bootstrap} says that clients reach it there "
                "(its option advertised.listeners)"
            ) from error

    def _connect(self, address: Address) -> Connection:
        known = self._connections.get(address)
        if known is not None and known.is_open:
            return known
        try:
            opened = Connection(
                address,
                client_id=self.client_id,
                timeout_s=min(self.timeout_s, 5.0),
                security=self.security,
                on_request=self.on_request,
            )
        except (NotReachable, TimedOut) as error:
            # A frozen broker accepts a connection and is silent; a dead host does not accept it.
            if isinstance(error, TimedOut) or isinstance(error.__cause__, TimeoutError):
                self.silence.on_timeout(address)
            raise
        self._connections[address] = opened
        return opened

    def _coordinator(self, key_type: int, key: str) -> int:
        known = key_type, key
        if known not in self._coordinators:
            self._coordinators[known] = self._find_coordinator(key_type, key)
        return self._coordinators[known]

    def _find_coordinator(self, key_type: int, key: str) -> int:
        # Version 3 asks for one key; later ones only add lists.
        request = FindCoordinatorRequest(key=key, key_type=key_type)
        response = self.ask(request, FindCoordinatorResponse, max_version=3)
        if response.error_code:
            code = ErrorCode(response.error_code)
            is_group = key_type == _GROUP_KEY
            raise CoordinatorError(code, response.error_message, key, is_group=is_group)
        self._nodes[response.node_id] = Address(response.host, response.port)
        return int(response.node_id)


class Controllers(Brokers):
    """Connections to the KRaft controllers of one cluster (KIP-919); `node_ids` are controllers.

    A broker in their place is an ApiError: MISMATCHED_ENDPOINT_TYPE.
    """

    def metadata(
        self,
        topics: Sequence[str | bytes] | None = None,
        *,
        with_operations: bool = False,
        creates: bool = False,
    ) -> MetadataResponse:
        """Raise ApiError: controllers do not serve metadata of topics."""
        raise unsupported_by_controllers()

    def ask(self, request: Message, response_type: type[M], *, max_version: int | None = None) -> M:
        """Send a request to any controller."""
        if not self._nodes:
            self._find_nodes()
        return super().ask(request, response_type, max_version=max_version)

    def require_node(self, node_id: int) -> None:
        """Raise ApiError unless this controller exists."""
        self.node_ids()
        self.address(node_id)

    def address(self, node_id: int) -> Address:
        """Return the address of the controller with this id; ApiError if the id is unknown."""
        if node_id not in self._nodes:
            raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {node_id} found.")
        return self._nodes[node_id]

    def _start(
        self,
        connection: Connection,
        request: Message,
        response_type: type[M],
        max_version: int | None,
        timeout_s: float | None = None,
    ) -> Callable[[], M]:
        try:
            return super()._start(connection, request, response_type, max_version, timeout_s)
        except Unsupported as error:
            raise unsupported_by_controllers() from error

    def _find_nodes(self) -> None:
        request_type = describe_cluster.DescribeClusterRequest
        response_type = describe_cluster.DescribeClusterResponse
        connection = self.any_connection()
        if connection.version_of(request_type) < _SINCE_ENDPOINT_TYPES:
            raise Unsupported(f"{connection.address} is no KRaft controller that tools can use.")
        response = self._call(
            connection, request_type(endpoint_type=_CONTROLLERS), response_type, None
        )
        if response.error_code:
            raise ApiError(ErrorCode(response.error_code), response.error_message)
        self._nodes = {row.broker_id: Address(row.host, row.port) for row in response.brokers}
        self._is_outdated = False
        self._controller_id = response.controller_id


def _check_topic(topic: MetadataResponseTopic, name: str | bytes) -> None:
    if topic.error_code:
        code = ErrorCode(topic.error_code)
        if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise ApiError(code, f"There is no topic {name!r}.")
        if code is ErrorCode.UNKNOWN_TOPIC_ID:
            raise ApiError(code, f"There is no topic with the id {name!r}.")
        raise ApiError(code, subject=f"Topic {name!r}")


def _named(topic: str | bytes) -> MetadataRequestTopic:
    if isinstance(topic, bytes):
        return MetadataRequestTopic(name=None, topic_id=topic)
    return MetadataRequestTopic(name=topic)


def unsupported_by_controllers() -> ApiError:
    """Return the error of a request that only brokers serve, as the Java client words it."""
    return ApiError(
        ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
        "This Admin API is not yet supported when communicating directly with the controller "
        "quorum.",
    )
