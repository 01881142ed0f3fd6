"""The small text files beside the logs, in Apache Kafka's formats; parsing is pure.

A damaged checkpoint is never fatal: the `load` functions log it and return the value for "unknown",
and recovery reads the truth from the segments. `meta.properties` is the exception: a directory
whose owner cannot be read is not opened. Follows org.apache.kafka.storage.internals.checkpoint.

Not done: these files have no checksum. An offset that is wrong but possible is believed, such as a
log start offset inside the log.
"""

import logging
from collections.abc import Mapping, Sequence

from ottla.base import uuids
from ottla.base.files import FileSystem

RECOVERY_POINT_FILE = "recovery-point-offset-checkpoint"
HIGH_WATERMARK_FILE = "replication-offset-checkpoint"
LOG_START_FILE = "log-start-offset-checkpoint"
CLEANER_FILE = "cleaner-offset-checkpoint"
LEADER_EPOCH_FILE = "leader-epoch-checkpoint"
PARTITION_METADATA_FILE = "partition.metadata"
META_PROPERTIES_FILE = "meta.properties"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
LOCK_FILE = ".lock"
# Ottla's own: the sessions in which the processes with this directory have registered.
REGISTRATIONS_FILE = "broker-registrations"

# Kafka's broker reads the epoch only in KRaft mode; -1 is "none".
CLEAN_SHUTDOWN_CONTENT = b'{"version":0,"brokerEpoch":-1}'

TopicPartition = tuple[str, int]
Offsets = dict[TopicPartition, int]
EpochStart = tuple[int, int]
Incarnation = tuple[int, int]
"""The session of a registration, and its time in milliseconds."""

_VERSION = 0

_log = logging.getLogger(__name__)


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """Return an offset checkpoint: version, count, one line for each partition."""
    rows = [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    return _encode(rows)


def parse_offsets(data: bytes) -> Offsets:
    """Return the offsets; raise ValueError with the reason if the file is damaged."""
    offsets: Offsets = {}
    for row in _rows(data):
        topic, partition, offset = row.split(" ")
        offsets[topic, _whole(partition)] = _whole(offset)
    return offsets


def encode_epochs(entries: Sequence[EpochStart]) -> bytes:
    """Return the leader-epoch checkpoint: version, count, one line of epoch and start offset each."""
    return _encode([f"{epoch} {start_offset}" for epoch, start_offset in entries])


def parse_epochs(data: bytes) -> list[EpochStart]:
    """Return the epochs and their start offsets, both rising; ValueError if the file is damaged."""
    entries: list[EpochStart] = []
    for row in _rows(data):
        epoch, start_offset = row.split(" ")
        entry = (_whole(epoch), _whole(start_offset))
        if entries and not (entry[0] > entries[-1][0] and entry[1] >= entries[-1][1]):
            raise ValueError(f"epoch {row!r} does not follow {entries[-1]}")
        entries.append(entry)
    return entries


def encode_registrations(entries: Sequence[Incarnation]) -> bytes:
    """Return the registrations: version, count, one line of session id and time in ms each."""
    return _encode([f"{session_id} {registered_ms}" for session_id, registered_ms in entries])


def parse_registrations(data: bytes) -> list[Incarnation]:
    """Return session ids and times; ValueError if the file is damaged."""
    pairs = (row.split(" ") for row in _rows(data))
    # Ids of sessions are signed.
    return [(int(session_id), _whole(registered_ms)) for session_id, registered_ms in pairs]


def encode_partition_metadata(topic_id: bytes) -> bytes:
    """Return the content of `partition.metadata`; its last line has no line end."""
    return f"version: {_VERSION}\ntopic_id: {uuids.uuid_text(topic_id)}".encode()


def parse_partition_metadata(data: bytes) -> bytes:
    """Return the topic id; raise ValueError with the reason if the file is damaged."""
    fields = dict(line.split(": ", 1) for line in data.decode().splitlines() if line.strip())
    if fields.get("version") != str(_VERSION):
        raise ValueError(f"version {fields.get('version')} is not known")
    return uuids.parse_uuid(fields.get("topic_id", "").strip())


def encode_properties(properties: Mapping[str, str]) -> bytes:
    """Return a Java properties file of plain names and values."""
    return "".join(f"{name}={value}\n" for name, value in properties.items()).encode()


def parse_properties(data: bytes) -> dict[str, str]:
    """Return a Java properties file's settings; raise ValueError for a line that is not a setting."""
    properties = {}
    for line in data.decode().splitlines():
        text = line.strip()
        if not text or text[0] in "#!":
            continue
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"the line {text!r} is not of the form name=value")
        properties[name.strip()] = value.strip().replace("\\", "")
    return properties


def load_offsets(files: FileSystem, path: str) -> Offsets:
    """Read an offset checkpoint; empty if the file is missing or damaged."""
    if not files.exists(path):
        return {}
    try:
        return parse_offsets(files.read(path))
    except ValueError as error:
        _log.warning("ignoring a damaged checkpoint path=%s reason=%s", path, error)
        return {}


def load_epochs(files: FileSystem, directory: str) -> list[EpochStart] | None:
    """Read a partition's leader epochs; None if the file is missing or damaged."""
    path = f"{directory}/{LEADER_EPOCH_FILE}"
    if not files.exists(path):
        return None
    try:
        return parse_epochs(files.read(path))
    except ValueError as error:
        _log.warning("ignoring damaged leader epochs path=%s reason=%s", path, error)
        return None


def load_topic_id(files: FileSystem, directory: str) -> bytes:
    """Read a partition's topic id; sixteen zero bytes if the file is missing or damaged."""
    path = f"{directory}/{PARTITION_METADATA_FILE}"
    if not files.exists(path):
        return uuids.ZERO_UUID
    try:
        return parse_partition_metadata(files.read(path))
    except ValueError as error:
        _log.warning("ignoring damaged partition metadata path=%s reason=%s", path, error)
        return uuids.ZERO_UUID


def _encode(rows: Sequence[str]) -> bytes:
    return "\n".join([str(_VERSION), str(len(rows)), *rows, ""]).encode()


def _rows(data: bytes) -> list[str]:
    text = data.decode()
    if not text.endswith("\n"):
        # The digits of the last number may have been cut.
        raise ValueError("its last line is not complete")
    lines = text.splitlines()
    if len(lines) < 2 or _whole(lines[0]) != _VERSION:
        raise ValueError("it does not begin with a known version and a count")
    count = _whole(lines[1])
    rows = lines[2:]
    if len(rows) != count:
        raise ValueError(f"it holds {len(rows)} lines, not {count}")
    return rows


def _whole(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError(f"{value} is below zero")
    return value
