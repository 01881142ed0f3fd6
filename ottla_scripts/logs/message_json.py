"""The fields of a message as JSON, as Kafka's generated classes write them."""

import base64
import re
from typing import Any

from ottla.base.uuids import uuid_text
from ottla.wire.fields import OCTETS, UUID, Array, Field, Nested, Struct, Type

_WORD = re.compile(r"_(\w)")


def message_fields(message: Struct, version: int) -> dict[str, Any]:
    """Return the fields of a version by Kafka's names; a tagged one only if it is not the default."""
    return {
        _WORD.sub(lambda found: found.group(1).upper(), field.name): _json(
            field.type, getattr(message, field.name), version
        )
        for field in message.FIELDS
        if field.is_in(version) and not _is_left_out(field, getattr(message, field.name))
    }


def _is_left_out(field: Field, value: Any) -> bool:
    default = [] if field.is_fresh and isinstance(field.type, Array) else field.default
    return field.tag is not None and bool(value == default)


def _json(kind: Type, value: Any, version: int) -> Any:
    if value is None:
        return None
    if isinstance(kind, Array):
        return [_json(kind.item, item, version) for item in value]
    if isinstance(kind, Nested):
        return message_fields(value, version)
    if kind is UUID:
        return uuid_text(value)
    if kind is OCTETS:
        return base64.b64encode(value).decode()
    return value
