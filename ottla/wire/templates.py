"""Ready-made responses, and the layout of the commonest requests, in every version.

A client repeats most bytes of a produce or fetch request, and the broker most bytes of its
response. A layout finds the repeated bytes of a request for one partition, which are its key, and
the numbers that vary. A template is an encoded response with holes for the numbers that vary; it is
made by the codec, so that it contains what the codec would write. No decision about a request is
made here.
"""

import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from ottla.base.buffers import Buffer
from ottla.wire import schema
from ottla.wire.fields import execute
from ottla.wire.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ottla.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.wire.primitives import encode_uvarint

# Packs the values of the holes into the response.
Fill = Callable[..., bytes]
# Encodes a response, with the header of a correlation id.
Encode = Callable[[Any, int], list[Buffer]]

_SIZE = struct.Struct(">i")
_CORRELATION_ID, _SESSION_ID, _RECORDS_BYTES = 0x6F74_6C01, 0x6F74_6C02, 0x6F74_6C03
_FIRST, _SECOND, _THIRD = 0x6F74_746C_6100_0001, 0x6F74_746C_6100_0002, 0x6F74_746C_6100_0003


def compile_template(encoded: bytes, holes: Mapping[str, int], *, more: str = "") -> Fill:
    """Return a function whose arguments are put into `encoded`, in the order of `holes`.

    `holes` has the placeholder of each argument: four bytes if it fits, otherwise eight. Arguments
    whose placeholder is not in `encoded` are ignored. `more` is an expression that is appended.
    """
    holes_found = []
    for name, placeholder in holes.items():
        code = "i" if placeholder < 1 << 31 else "q"
        packed = struct.pack(f">{code}", placeholder)
        if packed in encoded:
            holes_found.append((encoded.index(packed), code, name, len(packed)))
    constants: dict[str, bytes] = {}
    codes, values, position = "", [], 0
    for start, code, name, size in [*sorted(holes_found), (len(encoded), "", "", 0)]:
        if start > position:
            constant = f"bytes{len(constants)}"
            constants[constant] = encoded[position:start]
            codes += f"{start - position}s"
            values.append(constant)
        codes += code
        values += [name] if name else []
        position = start + size
    bind = _binder(tuple(holes), tuple(constants), tuple(values), more)
    fill: Fill = bind(struct.Struct(f">{codes}").pack, encode_uvarint, *constants.values())
    return fill


@cache
def _binder(
    arguments: tuple[str, ...], constants: tuple[str, ...], values: tuple[str, ...], more: str
) -> Callable[..., Fill]:
    """Return a function that makes a `Fill` from the constants of one template.

    The source is the same for every partition: compiling it once saves 0.1 ms for each.
    """
    source = (
        f"def bind(pack, uvarint, {', '.join(constants)}):\n"
        f"    def fill({', '.join(arguments)}):\n"
        f"        return pack({', '.join(values)}){more}\n"
        f"    return fill"
    )
    bind: Callable[..., Fill] = execute(source, "<template>", {}, "bind")
    return bind


class ProduceLayout:
    """The positions in a Produce request of one batch, in one version.

    The key is everything up to the size of the records: acks, timeout, topic, partition.
    """

    # Since Produce v9 sizes are compact; since v13 the topic has an id.
    def __init__(self, version: int) -> None:
        self.is_flexible = version >= ProduceRequest.FLEXIBLE_SINCE
        self.has_topic_ids = version >= 13
        self._encode = schema.encoder(ProduceRequest, version)
        # The byte of the topic's size, from the beginning of the request; all names are short.
        self.name_size_position = 8 if self.is_flexible else 13
        # The key without the name. The compact size is larger by one than the name.
        self.fixed_bytes = 13 if self.is_flexible else 22
        if self.has_topic_ids:
            self.fixed_bytes += 16
        # No tagged fields of the partition, the topic, the request.
        self.tail_bytes = 3 if self.is_flexible else 0

    def key_end(self, frame: memoryview, position: int) -> int:
        """Return the end of the key of a request that begins at `position`."""
        end = position + self.fixed_bytes
        return end if self.has_topic_ids else end + frame[position + self.name_size_position]

    def key_of(self, frame: memoryview, position: int, request: ProduceRequest) -> bytes | None:
        """Return the key of a decoded request; None unless its bytes are the usual ones."""
        key = frame[position : self.key_end(frame, position)].tobytes()
        return key if self._encode(request)[0].startswith(key) else None


def produce_template(topic: str, topic_id: bytes, partition: int, encode: Encode) -> Fill:
    """Return `fill(correlation_id, base_offset, log_append_time_ms, log_start_offset)`.

    It returns responses for one partition, each with its size.
    """
    partition_response = PartitionProduceResponse(
        index=partition,
        base_offset=_FIRST,
        log_append_time_ms=_SECOND,
        log_start_offset=_THIRD,
    )
    topic_response = TopicProduceResponse(
        name=topic, topic_id=topic_id, partition_responses=[partition_response]
    )
    encoded = b"".join(encode(ProduceResponse(responses=[topic_response]), _CORRELATION_ID))
    holes = {
        "correlation_id": _CORRELATION_ID,
        "base_offset": _FIRST,
        "log_append_time_ms": _SECOND,
        "log_start_offset": _THIRD,
    }
    return compile_template(_SIZE.pack(len(encoded)) + encoded, holes)


class FetchLayout:
    """The positions in a Fetch request of one partition, in one version.

    The head has `max_wait_ms`, `min_bytes`, `max_bytes`, `isolation_level`, and since v7 session
    and epoch. The key has topic, partition and leader epoch; `numbers` unpacks fetch offset and
    largest size, which follow it; the rest of the bytes is constant for a client.
    """

    # v5: log start offset. v7: sessions. v9: leader epoch. v12: compact sizes, last fetched epoch.
    # v13: topic ids. v15: the replica is a tagged field.
    def __init__(self, version: int) -> None:
        is_flexible = version >= FetchRequest.FLEXIBLE_SINCE
        self.has_sessions = version >= 7
        self.has_topic_ids = version >= 13
        self._encode = schema.encoder(FetchRequest, version)
        # Consumers are replica -1.
        self.replica = b"\xff\xff\xff\xff" if version < 15 else b""
        self.head = struct.Struct(f">{len(self.replica)}siiib" + "ii" * self.has_sessions)
        sizes_bytes = 2 if is_flexible else 10
        self.fixed_bytes = self.head.size + sizes_bytes + (4 if version < 9 else 8)
        # The byte of the topic's size, from the beginning of the request; all names are short.
        self.name_size_position = self.head.size + (1 if is_flexible else 5)
        if self.has_topic_ids:
            self.fixed_bytes += 16
        gap = "" if version < 5 else "8x" if version < 12 else "12x"
        self.numbers = struct.Struct(f">q{gap}i")

    def key_end(self, frame: memoryview, position: int) -> int:
        """Return the end of the key of a request that begins at `position`."""
        end = position + self.fixed_bytes
        return end if self.has_topic_ids else end + frame[position + self.name_size_position]

    def parts_of(
        self, frame: memoryview, position: int, request: FetchRequest
    ) -> tuple[bytes, bytes] | None:
        """Return key and constant rest of a decoded request; None unless its bytes are the usual
        ones.

        Decoders accept several encodings of the same request.
        """
        if frame[position:] != self._encode(request):
            return None
        fetched = request.topics[0].partitions[0]
        end = self.key_end(frame, position)
        if end + self.numbers.size > len(frame):
            return None
        is_there = self.numbers.unpack_from(frame, end) == (
            fetched.fetch_offset,
            fetched.partition_max_bytes,
        )
        key, rest = frame[position + self.head.size : end], frame[end + self.numbers.size :]
        return (key.tobytes(), rest.tobytes()) if is_there else None


def fetch_template(
    topic: str,
    topic_id: bytes,
    partition: int,
    encode: Encode,
    *,
    is_committed: bool,
    has_sessions: bool,
) -> tuple[Fill, bytes]:
    """Return a template of the bytes before the records of one partition, and the bytes after them.

    The arguments of the template are correlation id, session, high watermark, last stable offset,
    log start offset, and the number of bytes of the records. It has no aborted transactions.
    """
    aborted: list[AbortedTransaction] | None = [] if is_committed else None
    partition_data = PartitionData(
        partition_index=partition,
        high_watermark=_FIRST,
        last_stable_offset=_SECOND,
        log_start_offset=_THIRD,
        aborted_transactions=aborted,
        records=b"?",
    )
    topic_response = FetchableTopicResponse(
        topic=topic, topic_id=topic_id, partitions=[partition_data]
    )
    response = FetchResponse(
        session_id=_SESSION_ID if has_sessions else 0, responses=[topic_response]
    )
    # Only compact versions have bytes after the records.
    first, _, *ends = encode(response, _CORRELATION_ID)
    head, end = bytes(first), b"".join(ends)
    holes = {
        "correlation_id": _CORRELATION_ID,
        "session_id": _SESSION_ID,
        "high_watermark": _FIRST,
        "last_stable_offset": _SECOND,
        "log_start_offset": _THIRD,
        "records_bytes": _RECORDS_BYTES,
    }
    if head.endswith(_SIZE.pack(1)):
        head = head[: -_SIZE.size] + _SIZE.pack(_RECORDS_BYTES)
        return compile_template(head, holes), end
    return compile_template(head[:-1], holes, more=" + uvarint(records_bytes + 1)"), end
