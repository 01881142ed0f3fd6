"""JSON of typed values: plain ones, dataclasses, msgspec structs and pydantic models.

Values of classes are read by their type hints. Unknown fields are ignored, as the writer may be
newer than the reader. Pydantic models are read by pydantic, msgspec structs by `msgspec_json.py`.
"""

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Callable
from typing import Any, TypeVar

from ottla.client.doors import open_door
from ottla.client.serdes.serde import Serde

T = TypeVar("T")

_MSGSPEC = "ottla.client.serdes.msgspec_json", "msgspec", "msgspec"


def json_serde(kind: type[T] | None) -> Serde[T]:
    """Return the JSON serde of plain values, or of a `kind` (a class, list[X], dict[str, X], X |
    None…).
    """
    if kind is None:
        return Serde(_write, json.loads, "json")
    name = f"json({getattr(kind, '__name__', kind)})"
    if _is_struct(kind):
        write, read_bytes = open_door(*_MSGSPEC).bytes_of(kind)
        return Serde(write, read_bytes, name)
    if _is_model(kind):
        model: Any = kind
        return Serde(_write_model, model.model_validate_json, name)
    read = reader(typing.cast(Any, kind))
    return Serde(_write, lambda data: read(json.loads(data)), name, kind=kind)


def writes_json(serde: Serde[Any]) -> bool:
    """Return True if a serde writes any plain value as JSON and never raises."""
    return serde.serialize is _write


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and hasattr(kind, "__struct_fields__")


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and hasattr(kind, "model_validate_json")


def _write_model(value: Any) -> bytes:
    text: str = value.model_dump_json()
    return text.encode()


def _write(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=_plain).encode()


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field_.name: getattr(value, field_.name) for field_ in dataclasses.fields(value)}
    if isinstance(value, set | frozenset):
        return sorted(value)
    if _is_model(type(value)):
        return value.model_dump(mode="json")
    if _is_struct(type(value)):
        return open_door(*_MSGSPEC).plain(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON; use a serde for this type")


def _same(value: Any) -> Any:
    return value


@functools.cache
def reader(kind: Any) -> Callable[[Any], Any]:
    """Return a function that creates a `kind` from plain values, such as values of JSON or Avro."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _optional_reader(arguments)
    if origin is list:
        item = reader(arguments[0])
        return lambda values: [item(entry) for entry in values]
    if origin is dict:
        value = reader(arguments[1])
        return lambda values: {key: value(entry) for key, entry in values.items()}
    if origin is tuple or kind in (tuple, set, frozenset):
        return origin or kind  # type: ignore[no-any-return]
    return _class_reader(kind)


def _class_reader(kind: Any) -> Callable[[Any], Any]:
    if _is_struct(kind):
        read: Callable[[Any], Any] = open_door(*_MSGSPEC).of_plain(kind)
        return read
    if _is_model(kind):
        validate: Callable[[Any], Any] = kind.model_validate
        return validate
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _dataclass_reader(kind)
    return _same


def _optional_reader(arguments: tuple[Any, ...]) -> Callable[[Any], Any]:
    kinds = [argument for argument in arguments if argument is not type(None)]
    if len(kinds) > 1:
        return _same
    inner = reader(kinds[0])
    return lambda value: None if value is None else inner(value)


def _dataclass_reader(kind: type) -> Callable[[Any], Any]:
    readers: dict[str, Callable[[Any], Any]] = {}

    def read(fields: dict[str, Any]) -> Any:
        if not readers:
            # Resolved only when needed: a class may have fields of its own type.
            hints = typing.get_type_hints(kind)
            names = [field_.name for field_ in dataclasses.fields(typing.cast(Any, kind))]
            readers.update({name: reader(hints[name]) for name in names})
        known = {name: readers[name](value) for name, value in fields.items() if name in readers}
        return kind(**known)

    return read
