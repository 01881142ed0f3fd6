"""JSON for the values of the model, and values from JSON: one function each, by the type hints.

Dataclasses and named tuples are objects; tuples are arrays; a (topic, partition) key is the text
`topic-partition`.
"""

import dataclasses
import math
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

from ottla.base.errors import ConfigError
from ottla.operations.numbers import INT_MAX, LONG_MAX, natural_number, whole_number

Json = Any

_ARRAYS = (tuple, list, set, frozenset, Sequence, Collection)
_SCALARS: Mapping[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}
Refer = Callable[[type], dict[str, Json]]
"""Returns the reference to a dataclass's schema."""


def to_json(value: Any) -> Json:
    """Return a value as JSON; a number that is not finite becomes null."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        return {_key_text(key): to_json(item) for key, item in value.items()}
    if isinstance(value, _ARRAYS):
        return [to_json(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def from_json(hint: Any, value: Json, where: str) -> Any:
    """Return the value of a type; ConfigError names the place of a wrong part, such as
    `body.limit`.
    """
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _optional(hint, value, where)
    if origin in _ARRAYS:
        return _array(hint, value, where)
    if origin in (Mapping, dict):
        return _mapping(hint, value, where)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enumerated(hint, value, where)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _object(hint, value, where)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint in _SCALARS and type(value) is hint:
        if hint is int and abs(value) > LONG_MAX:
            raise ConfigError(f"{where} is {_short(value)}: a smaller number is needed")
        return value
    raise ConfigError(f"{where} must be {_a(_SCALARS.get(hint, 'value'))}, not {_short(value)}")


def from_text(hint: Any, text: str, where: str) -> Any:
    """Return the value of a parameter in the address; ConfigError if the text is none."""
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = [part for part in get_args(hint) if part is not types.NoneType]
    if get_origin(hint) in _ARRAYS:
        inner = get_args(hint)[0]
        return tuple(from_text(inner, part.strip(), where) for part in text.split(",") if part)
    if hint is bool:
        if text not in ("true", "false"):
            raise ConfigError(f"{where} must be true or false, not {text!r}")
        return text == "true"
    if hint in (int, float):
        try:
            number = whole_number(text) if hint is int else float(text)
        except ValueError:
            number = None
        if number is None:
            raise ConfigError(f"{where} must be a number, not {text[:80]!r}")
        return number
    return from_json(hint, text, where)


def schema_of(hint: Any, refer: Refer) -> dict[str, Json]:
    """Return the JSON Schema (2020-12, as in OpenAPI 3.1) of a type."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        parts = [schema_of(part, refer) for part in get_args(hint)]
        return {"anyOf": parts}
    if origin in (tuple, *_ARRAYS):
        return _array_schema(hint, refer)
    if origin in (Mapping, dict):
        return {"type": "object", "additionalProperties": schema_of(get_args(hint)[1], refer)}
    if hint is types.NoneType or hint is None:
        return {"type": "null"}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"type": "string", "enum": [item.value for item in hint]}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return refer(hint)
    return {"type": _SCALARS[hint]} if hint in _SCALARS else {}


def object_schema(kind: type, refer: Refer) -> dict[str, Json]:
    """Return the schema of a dataclass: fields without a default are required."""
    hints = get_type_hints(kind)
    properties: dict[str, Json] = {}
    required = []
    for field in dataclasses.fields(kind):
        schema = schema_of(hints[field.name], refer)
        if field.default is not dataclasses.MISSING:
            schema = {**schema, "default": to_json(field.default)}
        elif field.default_factory is dataclasses.MISSING:
            required.append(field.name)
        properties[field.name] = schema
    description = " ".join((kind.__doc__ or "").split())
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _optional(hint: Any, value: Json, where: str) -> Any:
    parts = get_args(hint)
    if value is None and types.NoneType in parts:
        return None
    (inner,) = [part for part in parts if part is not types.NoneType]
    return from_json(inner, value, where)


def _array(hint: Any, value: Json, where: str) -> Any:
    if not isinstance(value, list):
        raise ConfigError(f"{where} must be an array, not {_short(value)}")
    parts = get_args(hint)
    if get_origin(hint) is tuple and parts[-1] is not Ellipsis:
        if len(value) != len(parts):
            raise ConfigError(f"{where} must have {len(parts)} elements, not {len(value)}")
        pairs = zip(parts, value, strict=True)
        return tuple(from_json(part, item, f"{where}[{n}]") for n, (part, item) in enumerate(pairs))
    return tuple(from_json(parts[0], item, f"{where}[{n}]") for n, item in enumerate(value))


def _mapping(hint: Any, value: Json, where: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{where} must be an object, not {_short(value)}")
    key_hint, item_hint = get_args(hint)
    return {
        _key_of(key_hint, key, where): from_json(item_hint, item, f"{where}.{key}")
        for key, item in value.items()
    }


def _key_of(hint: Any, text: str, where: str) -> Any:
    if hint is int:
        return from_text(int, text, where)
    if get_origin(hint) is tuple:
        topic, dash, number = text.rpartition("-")
        partition = natural_number(number, INT_MAX)
        if not dash or partition is None:
            raise ConfigError(
                f"{where} has the key {text!r}: write topic-partition, as in orders-0"
            )
        return topic, partition
    return text


def _key_text(key: Any) -> str:
    return "-".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _enumerated(hint: type[Enum], value: Json, where: str) -> Enum:
    try:
        return hint(value)
    except ValueError:
        words = ", ".join(str(item.value) for item in hint)
        raise ConfigError(f"{where} must be one of {words}, not {_short(value)}") from None


def _object(kind: type, value: Json, where: str) -> Any:
    if not isinstance(value, dict):
        raise ConfigError(f"{where} must be an object, not {_short(value)}")
    hints = get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    if unknown := sorted(set(value) - set(fields)):
        raise ConfigError(f"{where} has no field {unknown[0]!r}; it has {', '.join(fields)}")
    for name, field in fields.items():
        has_default = (
            field.default is not dataclasses.MISSING
            or field.default_factory is not dataclasses.MISSING
        )
        if name not in value and not has_default:
            raise ConfigError(f"{where}.{name} is missing")
    return kind(
        **{name: from_json(hints[name], item, f"{where}.{name}") for name, item in value.items()}
    )


def _array_schema(hint: Any, refer: Refer) -> dict[str, Json]:
    parts = get_args(hint)
    if get_origin(hint) is tuple and parts[-1] is not Ellipsis:
        return {
            "type": "array",
            "prefixItems": [schema_of(part, refer) for part in parts],
            "minItems": len(parts),
            "maxItems": len(parts),
        }
    return {"type": "array", "items": schema_of(parts[0], refer)}


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"
