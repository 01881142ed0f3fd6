"""JSON files that Apache Kafka's tools read: partitions with offsets, replicas or nothing else."""

import json
from pathlib import Path
from typing import Any

from ottla.base.errors import ConfigError


def read_json(path: str, name: str = "version") -> dict[str, Any]:
    """Return the object of a JSON file in version 1; ConfigError if it is none."""
    text = Path(path).read_text(encoding="utf-8")
    try:
        content = json.loads(text)
    except ValueError:
        raise ConfigError("The input string is not a valid JSON") from None
    if not isinstance(content, dict):
        raise ConfigError(f"Expected JSON object, received {text.strip()}")
    version = content.get(name, 1)
    if version != 1:
        raise ConfigError(f"Not supported version field value {version}")
    return content


def partition_of(row: Any) -> tuple[str, int]:
    """Return topic and partition of a row; ConfigError names a missing field."""
    for field, kind in (("topic", str), ("partition", int)):
        if not isinstance(row, dict) or not isinstance(row.get(field), kind):
            raise ConfigError(
                f'the row {json.dumps(row)} needs a field "{field}" ({kind.__name__})'
            )
    return row["topic"], row["partition"]
