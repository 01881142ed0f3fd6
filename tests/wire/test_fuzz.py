"""A decoder returns a message or raises ProtocolError, whatever its input is.

OTTLA_FUZZ_CASES is the number of inputs (100000 by default), OTTLA_FUZZ_SEED the first seed. kio
must never get these inputs: it aborts the process on some of them.
"""

import contextlib
import gc
import os
import random
import time
import tracemalloc
from collections.abc import Callable

import pytest

from ottla.base.errors import ProtocolError
from ottla.wire import consumer_protocol, group_records, headers, schema
from tests.wire import samples

CASES = int(os.environ.get("OTTLA_FUZZ_CASES", "100000"))
SEED = int(os.environ.get("OTTLA_FUZZ_SEED", "1"))
# CPU time of one input; the longest inputs are some hundred bytes.
SECONDS_MAX = 0.1
BYTES_MAX = 4_000_000
INTERESTING = (
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x80\x80\x80\x80\x00",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xff",
    b"\x00\x00\xff\xff",
    b"\x7f\xff",
    b"\xff\xff",
    b"\xc3\x28",
    b"\xed\xa0\x80",
    b"\x00",
    b"\x01",
    b"\x7e",
    b"\x7f",
    b"\x80\x01",
)

Decode = Callable[[bytes], object]


def mutate(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Damage a message in one to three places, or replace it."""
    if rng.random() < 0.02:
        return rng.randbytes(rng.randrange(64))
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        position = rng.randrange(len(changed) + 1)
        match rng.randrange(7):
            case 0:
                del changed[position:]
            case 1 if position < len(changed):
                changed[position] = rng.randrange(256)
            case 2 if position < len(changed):
                changed[position] ^= 1 << rng.randrange(8)
            case 3:
                piece = rng.choice(INTERESTING)
                changed[position : position + len(piece)] = piece
            case 4:
                changed[position:position] = rng.choice(INTERESTING)
            case 5:
                del changed[position : position + rng.randrange(1, 9)]
            case _:
                start = rng.randrange(len(other) + 1)
                changed[position:] = other[start:]
    return bytes(changed)


def targets() -> list[tuple[str, Decode, bytes]]:
    """Return every decoder with a message that it accepts."""
    sampler = samples.Sampler(SEED, items=(1, 3))
    rows: list[tuple[str, Decode, bytes]] = []
    for cls, version in samples.each_version(samples.MESSAGES + samples.STORED):
        data = schema.encode(sampler.message(cls, version), version)
        rows.append((f"{cls.__name__} v{version}", schema.decoder(cls, version), data))
    for cls in samples.MESSAGES:
        version = cls.MAX_VERSION
        message = sampler.message(cls, version)
        if cls.__name__.endswith("Request"):
            data = headers.encode_request(message, version, 7, "client")
            rows.append((f"header of {cls.__name__}", headers.decode_request_header, data))
        else:
            data = b"".join(headers.encode_response_parts(7, message, version))
            rows.append((f"response {cls.__name__}", response_decoder(cls), data))
    subscription = consumer_protocol.ConsumerProtocolSubscription(topics=["a", "b"])
    assignment = consumer_protocol.ConsumerProtocolAssignment(user_data=b"abc")
    offset = group_records.OffsetCommitValue(offset=3, metadata="m")
    group = group_records.GroupMetadataValue(members=[group_records.MemberMetadata()])
    key = group_records.OffsetCommitKey(group="g", topic="t", partition=1)
    rows += [
        (
            "subscription",
            consumer_protocol.decode_subscription,
            consumer_protocol.encode_subscription(subscription),
        ),
        (
            "assignment",
            consumer_protocol.decode_assignment,
            consumer_protocol.encode_assignment(assignment),
        ),
        ("key", group_records.decode_key, group_records.encode_key(key)),
        ("offset", group_records.decode_offset_commit_value, group_records.encode_value(offset)),
        ("group", group_records.decode_group_metadata_value, group_records.encode_value(group)),
    ]
    return rows


def response_decoder(cls: type[schema.Message]) -> Decode:
    """Return a decoder of whole responses."""
    return lambda data: headers.decode_response(cls, cls.MAX_VERSION, data)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_mutated_messages_are_decoded_or_rejected() -> None:
    """No input raises anything but ProtocolError, and none takes long."""
    rng = random.Random(SEED)
    every = targets()
    refused = 0
    slowest = 0.0
    gc.disable()
    try:
        for case in range(CASES):
            name, decode, data = every[case % len(every)]
            hostile = mutate(rng, data, every[rng.randrange(len(every))][2])
            start = time.thread_time()
            try:
                decode(hostile)
            except ProtocolError:
                refused += 1
            except BaseException as error:
                error.add_note(f"{name} of {hostile.hex()}, case {case}, seed {SEED}")
                raise
            seconds = time.thread_time() - start
            if seconds > slowest:
                slowest = seconds
                assert slowest < SECONDS_MAX, f"{name} of {hostile.hex()}"
            if case % 10_000 == 0:
                gc.collect()
    finally:
        gc.enable()
    # Some mutations must be harmless, and some must be errors.
    assert CASES // 10 < refused < CASES


def test_mutated_messages_use_bounded_memory() -> None:
    """A few hundred bytes of input never make a decoder allocate megabytes."""
    rng = random.Random(SEED + 1)
    every = targets()
    tracemalloc.start()
    try:
        for case in range(3 * len(every)):
            name, decode, data = every[case % len(every)]
            hostile = mutate(rng, data, every[rng.randrange(len(every))][2])
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            with contextlib.suppress(ProtocolError):
                decode(hostile)
            peak = tracemalloc.get_traced_memory()[1] - before
            assert peak < BYTES_MAX, f"{name} of {hostile.hex()}"
    finally:
        tracemalloc.stop()
