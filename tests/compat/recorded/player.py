"""Plays a transcript to a broker over plain sockets and returns its responses."""

import contextlib
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ottla.base.errors import ErrorCode
from ottla.wire import headers
from ottla.wire.api_keys import APIS, Api
from ottla.wire.fields import Message
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.compat.recorded import messages, notation
from tests.compat.recorded.symbols import Symbols
from tests.compat.recorded.transcript import (
    Answers,
    Conversation,
    Exchange,
    Preparation,
    Take,
    Transcript,
)

CLOSED = "closed"
NOTHING = "nothing"
CLIENT_ID = "recorded"
_PATIENCE_S = 15.0
# A request that takes longer gets no response; rebalances in transcripts are shorter.
_ANSWER_S = 8.0
_POLL_S = 0.02
_LENGTH = struct.Struct(">i")
_PREFIX = struct.Struct(">hhi")
_NOT_YET = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)

R = TypeVar("R", bound=Message)


@dataclass
class Target:
    """A broker; `versions` are its supported versions by API key (first and last).

    `controller` is the address of a KRaft controller, if there is one.
    A broker with several processes may need `settling_s` until all of them know a confirmed change.
    """

    host: str
    port: int
    settling_s: float = 0.0
    controller: str = ""
    versions: dict[int, tuple[int, int]] = field(default_factory=dict)

    def serves(self, api: Api, version: int) -> bool:
        """Return True if the broker supports this version."""
        first, last = self.versions.get(int(api.key), (0, -1))
        return first <= version <= last


class Line:
    """One connection; requests and responses are whole frames."""

    def __init__(self, target: Target) -> None:
        self._socket = socket.create_connection((target.host, target.port), _ANSWER_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0

    def send(self, message: Message, version: int) -> int:
        """Send a request; return its correlation id."""
        self._correlation_id += 1
        frame = headers.encode_request(message, version, self._correlation_id, CLIENT_ID)
        self.send_raw(frame)
        return self._correlation_id

    def send_raw(self, frame: bytes) -> None:
        """Send a frame unchanged; a closed connection is noticed by the next `receive`."""
        with contextlib.suppress(ConnectionError):
            self._socket.sendall(_LENGTH.pack(len(frame)) + frame)

    def receive(self) -> bytes | None:
        """Return the next frame; None if the broker has closed the connection."""
        try:
            prefix = self._read(_LENGTH.size)
            return prefix and self._read(_LENGTH.unpack(prefix)[0])
        except ConnectionError:
            return None

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _read(self, size: int) -> bytes | None:
        data = bytearray()
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                return None
            data += part
        return bytes(data)


class Played(dict[int, Answers]):
    """The responses, by the line of the request and its version."""


def play(transcript: Transcript, target: Target) -> Played:
    """Play everything; versions that the target does not support are omitted."""
    with contextlib.closing(Line(target)) as line:
        response = ask(line, ApiVersionsRequest(), 0, ApiVersionsResponse)
    target.versions = {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}
    played = Played()
    for conversation in transcript.conversations:
        _Stage(target, played).play(conversation, transcript.path.name)
    return played


class _Stage:
    """The connections and the symbols of one conversation."""

    def __init__(self, target: Target, played: Played) -> None:
        self._target = target
        self._played = played
        self._lines: dict[str, Line] = {}
        self._symbols = Symbols(port=target.port)

    def play(self, conversation: Conversation, name: str) -> None:
        try:
            for step in conversation.steps:
                with _position_in_errors(name, step):
                    self._step(step)
        finally:
            for line in self._lines.values():
                line.close()

    def _step(self, step: object) -> None:
        match step:
            case Preparation(words=words):
                prepare(self._target, words)
            case Take():
                self._take(step)
            case Exchange(api=None):
                self._raw(step)
            case Exchange(is_waited_for=False):
                self._send(step, step.versions[0])
            case Exchange():
                self._exchange(step)

    def _line(self, name: str) -> Line:
        if name not in self._lines:
            self._lines[name] = Line(self._target)
        return self._lines[name]

    def _send(self, exchange: Exchange, version: int) -> None:
        assert exchange.api is not None
        request = messages.build(exchange.api.request, version, exchange.written, self._symbols)
        self._line(exchange.connection).send(request, version)

    def _exchange(self, exchange: Exchange) -> None:
        """Send in each version; symbols of one version's response are unknown in the next one."""
        assert exchange.api is not None
        before = after = self._symbols
        responses = self._played[exchange.line] = Answers()
        for version in exchange.versions:
            if self._target.serves(exchange.api, version):
                self._symbols = after = before.copy()
                self._send(exchange, version)
                if exchange.written.get("acks") == 0:
                    self._line(exchange.connection).send(ApiVersionsRequest(), 0)
                responses[version] = self._answer(exchange, version)
        self._symbols = after

    def _take(self, take: Take) -> None:
        version = take.exchange.versions[0]
        response = self._answer(take.exchange, version)
        self._played[take.exchange.line] = Answers({version: response})

    def _raw(self, exchange: Exchange) -> None:
        self._line(exchange.connection).send_raw(exchange.written)
        frame = self._receive(exchange.connection)
        response = frame if isinstance(frame, str) else notation.render(frame)
        self._played[exchange.line] = Answers({0: response})

    def _receive(self, connection: str) -> bytes | str:
        """Return a frame, or the word for its absence; after that the connection is opened again."""
        try:
            frame = self._line(connection).receive()
        except TimeoutError:
            self._lines.pop(connection).close()
            return NOTHING
        if frame is None:
            self._lines.pop(connection).close()
            return CLOSED
        return frame

    def _answer(self, exchange: Exchange, version: int) -> str:
        frame = self._receive(exchange.connection)
        if isinstance(frame, str):
            return frame
        if exchange.written.get("acks") == 0:
            return NOTHING
        assert exchange.api is not None
        _, response = headers.decode_response(exchange.api.response, version, frame)
        return notation.render(messages.show(response, version, self._symbols))


@contextlib.contextmanager
def _position_in_errors(name: str, step: object) -> Iterator[None]:
    """Add the position in the transcript to an error."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in {name}, line {getattr(step, 'line', '?')}")
        raise


# -- preparations ----------------------------------------------------------------------------------


def prepare(target: Target, words: list[str]) -> None:
    """Do what a line with `+` says. Raises AssertionError if it does not succeed."""
    verb, *rest = words
    with contextlib.closing(Line(target)) as line:
        match verb:
            case "topic":
                name, partitions, *settings = rest
                _poll(
                    f"{name} exists", lambda: _create_topic(line, name, int(partitions), settings)
                )
                _poll(f"{name} has leaders", lambda: _is_ready(line, name))
            case "ready":
                _poll(f"{rest[0]} has leaders", lambda: _is_ready(line, rest[0]))
            case "gone":
                _poll(f"{rest[0]} is gone", lambda: _partitions(line, rest[0]) is None)
            case "coordinator":
                _poll(f"{rest[0]} has a coordinator", lambda: _is_coordinated(line, rest[0]))
            case "transactional":
                _poll(f"{rest[0]} has a coordinator", lambda: _is_transactional(line, rest[0]))
            case "ended":
                _poll(f"{rest[0]} has no transaction", lambda: _is_ended(line, rest[0]))
            case "moved":
                _poll("all logs have moved", lambda: _is_moved(line))
            case "settle":
                time.sleep(target.settling_s)
            case "pause":
                time.sleep(float(rest[0]))
            case _:
                raise AssertionError(f"unknown preparation {verb!r}")


def _poll(what: str, is_true: Any) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not is_true():
        assert time.monotonic() < deadline, f"it did not come true that {what}"
        time.sleep(_POLL_S)


def ask(line: Line, request: Message, version: int, response: type[R]) -> R:
    """Send one request and return its response."""
    line.send(request, version)
    frame = line.receive()
    assert frame is not None, f"{type(request).__name__} closed the connection"
    return headers.decode_response(response, version, frame)[1]


def _request(line: Line, request: Message, version: int) -> Any:
    return ask(line, request, version, APIS[request.API_KEY].response)


def _create_topic(line: Line, name: str, partitions: int, settings: list[str]) -> bool:
    pairs = [setting.partition("=") for setting in settings]
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=key, value=value) for key, _, value in pairs],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
    (result,) = _request(line, request, 7).topics
    # A deleted topic of that name may still exist for a moment.
    code = ErrorCode(result.error_code)
    assert code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS), f"{name}: {code.name}"
    return code is ErrorCode.NONE


def _partitions(line: Line, name: str) -> list[Any] | None:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
    )
    (topic,) = _request(line, request, 9).topics
    if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return None
    return list(topic.partitions)


def _is_ready(line: Line, name: str) -> bool:
    partitions = _partitions(line, name)
    if not partitions or any(item.leader_id < 0 for item in partitions):
        return False
    requested = [
        ListOffsetsPartition(partition_index=item.partition_index, timestamp=-1)
        for item in partitions
    ]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=name, partitions=requested)])
    (topic,) = _request(line, request, 4).topics
    return not any(item.error_code for item in topic.partitions)


def _is_coordinated(line: Line, group: str) -> bool:
    response = _request(line, FindCoordinatorRequest(key=group), 1)
    if response.error_code:
        return False
    request = HeartbeatRequest(group_id=group, generation_id=1, member_id="nobody")
    return _request(line, request, 1).error_code not in _NOT_YET


def _is_ended(line: Line, transactional_id: str) -> bool:
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    (state,) = _request(line, request, 0).transaction_states
    return str(state.transaction_state).startswith(("Complete", "Empty"))


def _is_moved(line: Line) -> bool:
    results = _request(line, DescribeLogDirsRequest(topics=None), 1).results
    topics = [topic for result in results for topic in result.topics]
    return not any(item.is_future_key for topic in topics for item in topic.partitions)


def _is_transactional(line: Line, transactional_id: str) -> bool:
    response = _request(line, FindCoordinatorRequest(key=transactional_id, key_type=1), 1)
    if response.error_code:
        return False
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    (state,) = _request(line, request, 0).transaction_states
    return state.error_code not in _NOT_YET
