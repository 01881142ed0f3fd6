"""The JSON of Apache Kafka's tools: partitions with offsets, replicas or nothing else."""

import json
from collections.abc import Mapping
from typing import Any

from ottla.base.errors import ConfigError

_KINDS = {32: "int32", 64: "int64"}
_SHOWN = 200


def parse_document(text: str, name: str = "version") -> dict[str, Any]:
    """Return the object of a JSON text in version 1, which the field `name` has; ConfigError if it
    is none.
    """
    content = parse_json(text)
    if not isinstance(content, dict):
        raise ConfigError(f"Expected JSON object, received {text.strip()}")
    version = content.get(name, 1)
    if isinstance(version, bool) or version != 1:
        raise ConfigError(f"Not supported version field value {version}")
    return content


def parse_json(text: str) -> Any:
    """Return the value of a JSON text; ConfigError if it is none, or nested too deeply."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ConfigError("The input string is not a valid JSON") from None


def rows_of(content: Mapping[str, Any], name: str) -> list[Any]:
    """Return the list in a field, which is empty if there is no such field; ConfigError if it is
    something else.
    """
    rows = content.get(name, [])
    if not isinstance(rows, list):
        raise ConfigError(f'the field "{name}" is {_shown(rows)}: write a list, as in [...]')
    return rows


def partition_of(row: Any) -> tuple[str, int]:
    """Return topic and partition of a row; ConfigError names a missing field."""
    if not isinstance(row, dict) or not isinstance(row.get("topic"), str):
        raise ConfigError(f'the row {_shown(row)} needs a field "topic" (str)')
    return row["topic"], number_of(row, "partition", 32)


def partitions_of(
    content: Mapping[str, Any],
) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Return the partitions of a document, and the repeated ones among them."""
    keys = [partition_of(row) for row in rows_of(content, "partitions")]
    return keys, sorted({key for key in keys if keys.count(key) > 1})


def offsets_of(content: Mapping[str, Any]) -> dict[tuple[str, int], int]:
    """Return the offsets by partition of a document for kafka-delete-records; ConfigError if it is
    none.
    """
    if "partitions" not in content:
        raise ConfigError("Missing partitions field")
    offsets: dict[tuple[str, int], int] = {}
    twice = []
    for row in rows_of(content, "partitions"):
        key = partition_of(row)
        if key in offsets:
            twice.append(key)
        offsets[key] = number_of(row, "offset", 64)
    if twice:
        listed = ",".join(f"{topic}-{partition}" for topic, partition in dict.fromkeys(twice))
        raise ConfigError(f"Offset json file contains duplicate topic partitions: {listed}")
    return offsets


def number_of(row: Mapping[str, Any], field: str, bits: int) -> int:
    """Return the whole number in a field of a row; ConfigError if it is none of this size."""
    value: Any = row.get(field)
    if not is_number(value, bits):
        raise ConfigError(
            f'the row {_shown(row)} needs a field "{field}" ({_KINDS[bits]}): write a whole number'
        )
    return int(value)


def is_number(value: Any, bits: int) -> bool:
    """Return True if a JSON value is a signed whole number of this many bits; true is none."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return is_whole and -(1 << (bits - 1)) <= value < 1 << (bits - 1)


def compact(value: Any) -> str:
    """Return JSON without spaces, as Apache Kafka's tools write it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
