"""Our codec is compared with bytes of Apache Kafka, kio and kafka-python (see make_golden.py)."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from ottla.wire import schema
from tests.wire import foreign, samples

CLASSES = {cls.__name__: cls for cls in samples.MESSAGES + samples.STORED}
GOLDEN = Path(__file__).parent / "golden"


class Vector(NamedTuple):
    """One entry of a golden file."""

    cls: type[schema.Message]
    version: int
    encoders: list[str]
    message: schema.Struct
    data: bytes


def read_vectors(path: Path) -> list[Vector]:
    """Read one file of entries."""
    vectors = []
    for text in path.read_text(encoding="utf-8").split("\n\n"):
        head, document, *rows = text.strip().split("\n")
        _, name, version, *encoders = head.split()
        cls = CLASSES[name]
        message = samples.from_json(cls, json.loads(document))
        data = bytes.fromhex("".join(rows))
        vectors.append(Vector(cls, int(version), encoders, message, data))
    return vectors


FILES = sorted(GOLDEN.glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_messages_are_encoded_to_golden_bytes(path: Path) -> None:
    """Every message is encoded to the bytes of the foreign encoders."""
    for vector in read_vectors(path):
        assert isinstance(vector.message, schema.Message)
        assert schema.encode(vector.message, vector.version) == vector.data, vector


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_golden_bytes_decode_to_their_message(path: Path) -> None:
    """Every foreign byte string is decoded to its message completely."""
    for vector in read_vectors(path):
        decoded = schema.decode(vector.cls, vector.version, vector.data)
        assert decoded == (vector.message, len(vector.data)), vector


def test_golden_files_cover_every_message_in_every_version() -> None:
    """No message or version lacks a vector, and Apache Kafka is one of the encoders of each."""
    vectors = [vector for path in FILES for vector in read_vectors(path)]
    covered = {(vector.cls, vector.version) for vector in vectors}
    everything = samples.MESSAGES + samples.STORED
    assert covered == set(samples.each_version(everything))
    for vector in vectors:
        is_old = vector.cls.__name__.startswith(foreign.WITH_ZOOKEEPER)
        assert vector.encoders[0].startswith("kafka-3.9" if is_old else "kafka-4."), vector.cls
