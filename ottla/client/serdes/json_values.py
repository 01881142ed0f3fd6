"""JSON of typed values: plain ones, dataclasses, msgspec structs and pydantic models.

Values of classes are read by their type hints. Unknown fields are ignored, as the writer may be
newer than the reader; a missing field or a value of another type is a SerializationError that names
the field. Values are checked in the same way before they are written (`json_checks.py`). NaN and
infinities, which JSON does not have, are neither written nor read. Pydantic models are read by
pydantic, msgspec structs by `msgspec_json.py`.

Not done: when values are read, checks of the items of lists and dicts whose types are plain, and of
unions of several types.
"""

import dataclasses
import functools
import json
import math
import sys
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeVar

from ottla.client.doors import open_door
from ottla.client.errors import SerializationError
from ottla.client.serdes.json_checks import UnfitError, check_of, described
from ottla.client.serdes.serde import Serde

T = TypeVar("T")

_MSGSPEC = "ottla.client.serdes.msgspec_json", "msgspec", "msgspec"


def json_serde(kind: type[T] | None) -> Serde[T]:
    """Return the JSON serde of plain values, or of a `kind` (a class, list[X], dict[str, X], X |
    None…).
    """
    if kind is None:
        return Serde(_write, _load, "json")
    if isinstance(kind, _VALUES) or _is_instance(kind):
        raise TypeError(f"Serdes.json takes a class, such as {type(kind).__name__}, not {kind!r}")
    kind_name = getattr(kind, "__name__", str(kind))
    name = f"json({kind_name})"
    if _is_struct(kind):
        write, read_bytes = open_door(*_MSGSPEC).bytes_of(kind)
        return Serde(write, read_bytes, name)
    if _is_model(kind):
        model: Any = kind
        return Serde(_write_model, model.model_validate_json, name)
    read = reader(typing.cast(Any, kind), is_checked=True)

    def read_checked(data: bytes) -> T:
        try:
            result: T = read(_load(data))
        except UnfitError as error:
            text = error.sentence()
            raise SerializationError(f"the JSON does not fit {kind_name}: {text}") from None
        return result

    return Serde(_checked_writer(kind, kind_name), read_checked, name, kind=kind)


def _checked_writer(kind: Any, kind_name: str) -> Callable[[Any], bytes]:
    """Return a function that writes values of a type, and raises SerializationError for others."""
    check = check_of(kind)
    if check is None:
        return _write

    def write_checked(value: Any) -> bytes:
        try:
            check(value)
        except UnfitError as error:
            text = error.sentence()
            raise SerializationError(f"the value does not fit {kind_name}: {text}") from None
        return _write(value)

    return write_checked


def writes_json(serde: Serde[Any]) -> bool:
    """Return True if a serde writes any plain value as JSON, except for NaN and infinities."""
    return serde.serialize is _write


def _load(data: bytes) -> Any:
    try:
        return _decoder()(data)
    except ValueError:
        return json.loads(data, parse_constant=_refuse_constant)
    except RecursionError:
        raise SerializationError(f"the JSON {_TOO_DEEP}") from None


_TOO_DEEP = f"is nested more deeply than Python's limit of {sys.getrecursionlimit()} calls allows"


@functools.cache
def _decoder() -> Callable[[bytes], Any]:
    # Several times as fast as the standard library's.
    decode: Callable[[bytes], Any] = open_door(*_MSGSPEC).decoder()
    return decode


def _refuse_constant(name: str) -> NoReturn:
    raise SerializationError(f"the JSON contains {name}, which JSON does not have")


# A value instead of its class is a mistake; other objects may be types of `typing`.
_VALUES = (str, bytes, int, float, list, dict, tuple, set)


def _is_instance(kind: Any) -> bool:
    return dataclasses.is_dataclass(kind) and not isinstance(kind, type)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and hasattr(kind, "__struct_fields__")


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and hasattr(kind, "model_validate_json")


def _write_model(value: Any) -> bytes:
    text: str = value.model_dump_json()
    return text.encode()


def _write(value: Any) -> bytes:
    try:
        text = _encode(value)
    except RecursionError:
        raise SerializationError(f"the value {_TOO_DEEP}") from None
    except ValueError:
        for path, number in _special_numbers(value, ""):
            whose = f"field {path}" if path else "the value"
            raise SerializationError(f"{whose} is {number}, which JSON does not have") from None
        raise
    return text.encode()


def _special_numbers(value: Any, path: str) -> Iterator[tuple[str, float]]:
    """Yield the NaNs and infinities of a value, with their paths."""
    if isinstance(value, float):
        if not math.isfinite(value):
            yield path, value
        return
    if isinstance(value, dict):
        entries = [(f"{path}.{key}" if path else str(key), inner) for key, inner in value.items()]
    elif isinstance(value, list | tuple):
        entries = [(f"{path}[{index}]", inner) for index, inner in enumerate(value)]
    elif isinstance(value, str | int | None):
        return
    else:
        entries = [(path, _plain(value))]
    for inner_path, inner in entries:
        yield from _special_numbers(inner, inner_path)


def _plain(value: Any) -> Any:
    if _is_instance(value):
        return {field_.name: getattr(value, field_.name) for field_ in dataclasses.fields(value)}
    if isinstance(value, set | frozenset):
        return sorted(value)
    if _is_model(type(value)):
        return value.model_dump(mode="json")
    if _is_struct(type(value)):
        return open_door(*_MSGSPEC).plain(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON; use a serde for this type")


# Made once: json.dumps makes an encoder at each call.
_encode = json.JSONEncoder(
    separators=(",", ":"), ensure_ascii=False, default=_plain, allow_nan=False
).encode


def _same(value: Any) -> Any:
    return value


@functools.cache
def reader(kind: Any, *, is_checked: bool = False) -> Callable[[Any], Any]:
    """Return a function that creates a `kind` from plain values, such as values of JSON or Avro.

    With `is_checked` it raises ValueError for values of other types, with the path of the field.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _optional_reader(arguments, is_checked)
    if origin in (list, dict):
        # Spark does not see the types of plain items (catalyst/json_fields.py).
        is_plain = arguments[-1] in _PLAIN
        item = _same if is_plain else reader(arguments[-1], is_checked=is_checked)
        read = _list_reader(item) if origin is list else _dict_reader(item)
        return _checked(read, origin) if is_checked else read
    if origin is tuple or kind in (tuple, set, frozenset):
        return origin or kind  # type: ignore[no-any-return]
    if is_checked and kind in _PLAIN:
        return _checked(_same, kind)
    return _class_reader(kind, is_checked)


_PLAIN = (str, int, float, bool)


def _checked(read: Callable[[Any], Any], kind: Any) -> Callable[[Any], Any]:
    """Return a reader that first checks the type of the value; whole numbers are also floats."""
    accepted = (int, float) if kind is float else kind
    is_number = kind in (int, float)

    def read_checked(value: Any) -> Any:
        if not isinstance(value, accepted) or (is_number and isinstance(value, bool)):
            raise UnfitError(f"must be {kind.__name__}, not {described(value)}")
        return read(value)

    return read_checked


def _list_reader(item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read(values: list[Any]) -> list[Any]:
        results: list[Any] = []
        try:
            for entry in values:
                results.append(item(entry))
        except UnfitError as error:
            raise error.below(f"[{len(results)}]") from None
        return results

    return list if item is _same else read


def _dict_reader(item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read(values: dict[str, Any]) -> dict[str, Any]:
        results, key = {}, ""
        try:
            for key, entry in values.items():
                results[key] = item(entry)
        except UnfitError as error:
            raise error.below(f".{key}") from None
        return results

    return dict if item is _same else read


def _class_reader(kind: Any, is_checked: bool) -> Callable[[Any], Any]:
    if _is_struct(kind):
        read: Callable[[Any], Any] = open_door(*_MSGSPEC).of_plain(kind)
        return read
    if _is_model(kind):
        validate: Callable[[Any], Any] = kind.model_validate
        return validate
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        read_fields = _dataclass_reader(kind, is_checked)
        return _checked(read_fields, dict) if is_checked else read_fields
    return _same


def _optional_reader(arguments: tuple[Any, ...], is_checked: bool) -> Callable[[Any], Any]:
    kinds = [argument for argument in arguments if argument is not type(None)]
    if len(kinds) > 1:
        return _same
    return _or_none(reader(kinds[0], is_checked=is_checked))


def _or_none(inner: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else inner(value)


def _dataclass_reader(kind: type, is_checked: bool) -> Callable[[Any], Any]:
    readers: dict[str, Callable[[Any], Any]] = {}
    fields_of_kind = dataclasses.fields(typing.cast(Any, kind))
    needed = {
        field_.name
        for field_ in fields_of_kind
        if field_.init and field_.default is field_.default_factory is dataclasses.MISSING
    }

    def read(fields: dict[str, Any]) -> Any:
        if not readers:
            # Resolved only when needed: a class may have fields of its own type.
            hints = typing.get_type_hints(kind)
            for field_ in fields_of_kind:
                inner = reader(hints[field_.name], is_checked=is_checked)
                readers[field_.name] = _or_none(inner) if field_.default is None else inner
        if is_checked and not needed <= fields.keys():
            missing = ", ".join(sorted(needed - fields.keys()))
            raise UnfitError(f"has no field {missing}")
        known, name = {}, ""
        try:
            for name, value in fields.items():
                if name in readers:
                    known[name] = readers[name](value)
        except UnfitError as error:
            raise error.below(f".{name}") from None
        return kind(**known)

    return read
