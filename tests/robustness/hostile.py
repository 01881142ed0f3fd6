"""Invalid requests: valid ones of every API and version, damaged in many ways, from one seed.

The valid ones were encoded by Apache Kafka (tests/wire/golden); there are also Produce requests
with batches of every codec for an existing topic.
"""

import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ottla.base.errors import ProtocolError
from ottla.wire import headers, schema
from ottla.wire.api_keys import ApiKey, api_of
from ottla.wire.messages.create_partitions import CreatePartitionsRequest
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records.batch import seal
from ottla.wire.records.records import Record, encode_batch
from tests.wire.test_fuzz import mutate
from tests.wire.test_golden import read_vectors

GOLDEN = Path(__file__).parents[1] / "wire" / "golden"
TOPIC = "target"
CODECS = range(5)
# A topic with more partitions than this is legitimate work, not hostile input.
_PARTITIONS_MAX = 20
_HEADER_BYTES = 8
_SIZES = (-1, 0, 1, 3, 7, -(2**31), 2**31 - 1, 100 * 1024**2 + 1, 0x48545450)


class Valid(NamedTuple):
    """A request as a client would send it: header and body, without the size."""

    name: str
    cls: type[schema.Message]
    version: int
    header: bytes
    body: bytes
    # The start and the end of the only batch in the body.
    batch: tuple[int, int] = (0, 0)


class Case(NamedTuple):
    """Bytes for a connection; `is_whole` if a broker can see that the request has ended."""

    name: str
    data: bytes
    is_whole: bool


def valid_requests() -> list[Valid]:
    """Return every golden request, and Produce requests for `TOPIC`."""
    values = []
    for path in sorted(GOLDEN.glob("*.txt")):
        for vector in read_vectors(path):
            if vector.cls.__name__.endswith("Request"):
                assert isinstance(vector.message, schema.Message)
                values.append(_valid(vector.message, vector.version, vector.data))
    for codec in CODECS:
        for version in (3, 9):
            values.append(_produce(codec, version))
    return values


def _valid(message: schema.Message, version: int, body: bytes) -> Valid:
    whole = headers.encode_request(message, version, 7, "hostile")
    name = f"{type(message).__name__} v{version}"
    return Valid(name, type(message), version, whole[: len(whole) - len(body)], body)


def _produce(codec: int, version: int) -> Valid:
    records = [Record(b"k%d" % at, b"v" * at, (("h", b"x"),), 1_790_000_000_000) for at in range(9)]
    encoded = bytes(encode_batch(records, compression=codec))
    data = PartitionProduceData(index=0, records=encoded)
    topic = TopicProduceData(name=TOPIC, partition_data=[data])
    message = ProduceRequest(acks=1, timeout_ms=100, topic_data=[topic])
    body = schema.encode(message, version)
    start = body.index(encoded)
    return _valid(message, version, body)._replace(batch=(start, start + len(encoded)))


class Hostile:
    """Generates the cases of one seed, without end."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self.valid = valid_requests()

    def cases(self) -> Iterator[Case]:
        """Yield one case after the other."""
        while True:
            request = self._rng.choice(self.valid)
            case = self._case(request)
            if not _asks_for_much(case.data):
                yield case

    def _case(self, request: Valid) -> Case:
        rng = self._rng
        kind = rng.random()
        if kind < 0.08:
            return _whole(request.name, request.header + request.body)
        if kind < 0.72:
            other = rng.choice(self.valid)
            return _whole(
                request.name, request.header + mutate(rng, request.body, other.body), "body"
            )
        if kind < 0.80:
            request = rng.choice(self.valid[-2 * len(CODECS) :])
            return _whole(request.name, request.header + self._damaged_batch(request), "batch")
        if kind < 0.88:
            header = mutate(rng, request.header, request.header)
            return _whole(request.name, header + request.body, "header")
        if kind < 0.92:
            return self._of_wrong_size(request)
        if kind < 0.96:
            frame = request.header + request.body
            cut = rng.randrange(len(frame) + 1)
            return Case(f"{request.name} cut", struct.pack(">i", len(frame)) + frame[:cut], False)
        return _whole("noise", rng.randbytes(rng.choice((0, 1, 7, 8, 9, 100, 5000))))

    def _damaged_batch(self, request: Valid) -> bytes:
        """Damage a batch and give it a valid checksum."""
        start, end = request.batch
        changed = bytearray(request.body)
        for _ in range(self._rng.randrange(1, 4)):
            changed[self._rng.randrange(start + 21, end)] = self._rng.randrange(256)
        seal(changed, start, end - start)
        return bytes(changed)

    def _of_wrong_size(self, request: Valid) -> Case:
        frame = request.header + request.body
        size = self._rng.choice((*_SIZES, len(frame) - 1, len(frame) + 1, len(frame) // 2))
        return Case(f"{request.name} size", struct.pack(">i", size) + frame, False)


def _whole(name: str, frame: bytes, what: str = "valid") -> Case:
    return Case(f"{name} {what}", struct.pack(">i", len(frame)) + frame, True)


def _asks_for_much(data: bytes) -> bool:
    """Return True if a request creates many partitions, which is work and not an attack."""
    if len(data) < 4 + _HEADER_BYTES:
        return False
    key, version = struct.unpack_from(">hh", data, 4)
    try:
        if key == ApiKey.CREATE_TOPICS:
            message = _decoded(CreateTopicsRequest, version, data)
            return any(
                topic.num_partitions > _PARTITIONS_MAX or len(topic.assignments) > _PARTITIONS_MAX
                for topic in message.topics
            )
        if key == ApiKey.CREATE_PARTITIONS:
            message = _decoded(CreatePartitionsRequest, version, data)
            return any(topic.count > _PARTITIONS_MAX for topic in message.topics)
    except ProtocolError:
        return False
    return False


def _decoded(cls: type[schema.Message], version: int, data: bytes) -> schema.Message:
    frame = memoryview(data)[4:]
    header = headers.decode_request_header(frame)
    return schema.decode(cls, version, frame, header.body_position)[0]


def api_names() -> set[str]:
    """Return the APIs that the cases cover."""
    return {api_of(request.cls).name for request in valid_requests()}
