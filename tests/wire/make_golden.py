"""Writes tests/wire/golden/*.txt: one message of every kind and version, as foreign encoders write
it.

    python -m tests.wire.make_golden --kafka-libs DIRECTORY_OF_KAFKA_4.3_JARS [--only STEM ...]

The APIs that exist only with ZooKeeper need the jars of Apache Kafka 3.9 instead, and `--only`.
Each entry names the message, its version and the encoders that produced exactly these bytes, then
the message as JSON (fields that differ from their default; bytes in base64) and the bytes in
hexadecimal. The bytes are never Ottla's own: an entry without an encoder is not written, and
encoders that disagree end the run.
"""

import argparse
import base64
import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from ottla.wire import fields
from ottla.wire.api_keys import api_of
from ottla.wire.schema import Message, Struct
from tests.wire import foreign, samples

GOLDEN = Path(__file__).parent / "golden"
SEED = 3
BYTES_PER_LINE = 32
# In Kafka's schema the kind of a key is the prefix of its record; here it is the version of its
# message.
KEY_CLASSES = ("OffsetCommitKey", "GroupMetadataKey")


def camel(name: str) -> str:
    """Turn `topic_id` into `topicId`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest).replace("Kraft", "KRaft")


def java_json(message: Struct, version: int) -> dict[str, Any]:
    """Write a message as Kafka's JsonConverter reads it."""
    document = {}
    for field in message.FIELDS:
        value = getattr(message, field.name)
        default = [] if field.is_fresh else field.default
        if field.is_in(version) and not (field.tag is not None and value == default):
            document[camel(field.name)] = _java_value(value, field.type, version)
    return document


def _java_value(value: Any, type: fields.Type, version: int) -> Any:
    if isinstance(value, Struct):
        return java_json(value, version)
    if isinstance(value, list):
        assert isinstance(type, fields.Array)
        return [_java_value(item, type.item, version) for item in value]
    if isinstance(value, bytes):
        if type is fields.UUID:
            return base64.urlsafe_b64encode(value).decode().rstrip("=")
        return base64.b64encode(value).decode()
    return value


def java_class(cls: type[Message]) -> str:
    """Return the name of the generated class."""
    if cls.API_KEY >= 0:
        return f"org.apache.kafka.common.message.{cls.__name__}Data"
    if cls.__name__.startswith("ConsumerProtocol"):
        return f"org.apache.kafka.common.message.{cls.__name__}"
    return f"org.apache.kafka.coordinator.group.generated.{cls.__name__}"


def encode_with_java(chosen: list[tuple[Message, int]], libs: str) -> list[bytes | None]:
    """Run all messages through one JVM."""
    lines = []
    for message, version in chosen:
        cls = type(message)
        java_version = 0 if cls.__name__ in KEY_CLASSES else version
        document = json.dumps(java_json(message, version))
        lines.append(f"{java_class(cls)} {java_version} {document}\n")
    source = Path(__file__).parent / "GoldenVectors.java"
    done = subprocess.run(
        ["java", "-cp", f"{libs}/*", str(source)],
        input="".join(lines),
        capture_output=True,
        text=True,
        check=True,
    )
    results: list[bytes | None] = []
    for (message, version), line in zip(chosen, done.stdout.splitlines(), strict=True):
        if line.startswith("!"):
            print(f"java: {type(message).__name__} v{version} {line}", file=sys.stderr)
        results.append(None if line.startswith("!") else bytes.fromhex(line))
    return results


def entry(message: Message, version: int, java: bytes | None, java_name: str) -> str:
    """Write one entry; all encoders that know the message must agree."""
    cls = type(message)
    encoded = {}
    if java is not None:
        encoded[java_name] = java
    if foreign.kio_class(cls, version):
        encoded[f"kio-{importlib.metadata.version('kio')}"] = foreign.encode_with_kio(
            message, version
        )
    if foreign.kafka_python_class(cls):
        name = f"kafka-python-{importlib.metadata.version('kafka-python')}"
        encoded[name] = foreign.encode_with_kafka_python(message, version)
    assert encoded, f"no foreign encoder for {cls.__name__} v{version}"
    assert len(set(encoded.values())) == 1, f"{cls.__name__} v{version}: {encoded}"
    data = next(iter(encoded.values()))
    rows = [
        data[start : start + BYTES_PER_LINE].hex(" ")
        for start in range(0, len(data), BYTES_PER_LINE)
    ]
    document = json.dumps(samples.to_json(message), ensure_ascii=False)
    return "\n".join([f"== {cls.__name__} {version} {' '.join(encoded)}", document, *rows, ""])


def main() -> None:
    """Write one file for each API and one for stored records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka-libs", required=True, help="jars of an Apache Kafka release")
    parser.add_argument("--only", nargs="*", help="the files to write; all by default")
    arguments = parser.parse_args()
    libs = arguments.kafka_libs
    client_jar = next(Path(libs).glob("kafka-clients-*.jar")).stem
    java_name = f"kafka-{client_jar.removeprefix('kafka-clients-')}"
    sampler = samples.Sampler(SEED, portable=True, items=(1, 2))
    classes = samples.MESSAGES + samples.STORED
    if arguments.only:
        classes = tuple(cls for cls in samples.MESSAGES if api_of(cls).stem in arguments.only)
    chosen = [
        (sampler.message(cls, version), version) for cls, version in samples.each_version(classes)
    ]
    files: dict[str, list[str]] = {}
    for (message, version), java in zip(chosen, encode_with_java(chosen, libs), strict=True):
        stem = api_of(message).stem if message.API_KEY >= 0 else "stored"
        files.setdefault(stem, []).append(entry(message, version, java, java_name))
    GOLDEN.mkdir(exist_ok=True)
    for stem, entries in files.items():
        (GOLDEN / f"{stem}.txt").write_text("\n".join(entries), encoding="utf-8")


if __name__ == "__main__":
    main()
