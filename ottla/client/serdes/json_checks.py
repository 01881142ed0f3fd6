"""Checks of values against the type hints of a class, before they are written as JSON.

A value of another type would be written without an error, and every reader would reject the record.
A dataclass may be written from an object of it or from a dict with its fields.

Not done: checks of the fields of msgspec structs and pydantic models (pydantic has its own), of
unions of several types, and of hints without a form in JSON.
"""

import dataclasses
import json
import types
import typing
from collections.abc import Callable
from typing import Any

Check = Callable[[Any], None]
_SHOWN_MAX = 40


class UnfitError(ValueError):
    """A value does not have the type of its hint; the text names the place."""

    def below(self, place: str) -> "UnfitError":
        """Return an error that begins with a place."""
        text = str(self)
        return UnfitError(f"{place}{text if text.startswith(('.', '[')) else f' {text}'}")

    def sentence(self) -> str:
        """Return the text for users: it begins with the field, if any."""
        text = str(self)
        return f"field {text.removeprefix('.')}" if text.startswith((".", "[")) else text


def described(value: Any) -> str:
    """Return a value as JSON, shortened; objects without a form in JSON as Python writes them."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"


def check_of(kind: Any) -> Check | None:
    """Return a function that raises UnfitError for values that do not fit a type; None if every
    value fits.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        kinds = [argument for argument in arguments if argument is not type(None)]
        return None if len(kinds) > 1 else _or_none(check_of(kinds[0]))
    accepted = _ACCEPTED.get(origin or kind)
    if accepted is not None:
        return _of_type((origin or kind).__name__, accepted, _inner(origin, arguments))
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _of_dataclass(kind)
    if isinstance(kind, type) and (
        hasattr(kind, "__struct_fields__") or hasattr(kind, "model_validate_json")
    ):
        return _of_type(kind.__name__, (kind, dict), None)
    return None


_ACCEPTED: dict[Any, tuple[type, ...]] = {
    str: (str,),
    int: (int,),
    float: (int, float),
    bool: (bool,),
    # JSON writes all of these as arrays.
    list: (list, tuple),
    tuple: (list, tuple),
    set: (set, frozenset),
    frozenset: (set, frozenset),
    dict: (dict,),
}


def _of_type(name: str, accepted: tuple[type, ...], inner: Check | None) -> Check:
    is_number = name in ("int", "float")

    def check(value: Any) -> None:
        if not isinstance(value, accepted) or (is_number and isinstance(value, bool)):
            raise UnfitError(f"must be {name}, not {type(value).__name__} {described(value)}")
        if inner is not None:
            inner(value)

    return check


def _inner(origin: Any, arguments: tuple[Any, ...]) -> Check | None:
    """Return the check of the items of a collection."""
    if origin is tuple and arguments[-1] is not Ellipsis:
        return None
    if origin is None:
        return None
    if origin is not dict:
        return _of_items(check_of(arguments[0]))
    keys = check_of(arguments[0]) if arguments[0] is str else None
    return _of_entries(keys, check_of(arguments[1]))


def _of_items(item: Check | None) -> Check | None:
    if item is None:
        return None

    def check(values: Any) -> None:
        for index, value in enumerate(values):
            _at(f"[{index}]", item, value)

    return check


def _of_entries(key_check: Check | None, item: Check | None) -> Check:
    def check(values: dict[Any, Any]) -> None:
        for key, value in values.items():
            if key_check is not None:
                _at(f".{key} has a key that", key_check, key)
            if item is not None:
                _at(f".{key}", item, value)

    return check


def _at(place: str, check: Check, value: Any) -> None:
    try:
        check(value)
    except UnfitError as error:
        raise error.below(place) from None


def _or_none(check: Check | None) -> Check | None:
    if check is None:
        return None

    def check_present(value: Any) -> None:
        if value is not None:
            check(value)

    return check_present


def _of_dataclass(kind: type) -> Check:
    checks: dict[str, Check | None] = {}
    fields = dataclasses.fields(typing.cast(Any, kind))
    needed = [
        field_.name
        for field_ in fields
        if field_.init and field_.default is field_.default_factory is dataclasses.MISSING
    ]

    def check(value: Any) -> None:
        if not checks:
            # Resolved only when needed: a class may have fields of its own type.
            checks.update(_field_checks(kind, fields))
        if isinstance(value, dict):
            _check_names(kind, value, needed, checks)
            present = value
        elif isinstance(value, kind) or _has_name_of(value, kind):
            present = value.__dict__ if hasattr(value, "__dict__") else _slots(value, checks)
            _check_names(kind, present, list(checks), None)
        else:
            raise UnfitError(
                f"must be {kind.__name__}, not {type(value).__name__} {described(value)}"
            )
        for name, field_check in checks.items():
            if field_check is not None and name in present:
                _at(f".{name}", field_check, present[name])

    return check


def _field_checks(
    kind: type, fields: tuple[dataclasses.Field[Any], ...]
) -> dict[str, Check | None]:
    try:
        hints = typing.get_type_hints(kind)
    except NameError:
        # Hints that are known in a function only; the class can be written but not read.
        hints = {}
    results: dict[str, Check | None] = {}
    for field_ in fields:
        check = check_of(hints.get(field_.name, Any))
        results[field_.name] = _or_none(check) if field_.default is None else check
    return results


def _check_names(
    kind: type, present: dict[str, Any], needed: list[str], known: dict[str, Any] | None
) -> None:
    missing = [name for name in needed if name not in present]
    if missing:
        raise UnfitError(f"has no field {', '.join(missing)}")
    unknown = [str(name) for name in present if known is not None and name not in known]
    if unknown:
        raise UnfitError(f"has the field {', '.join(unknown)}, which {kind.__name__} has not")


def _has_name_of(value: Any, kind: type) -> bool:
    """Return True for an object of the same class that another process sent by value."""
    other = type(value)
    names = (other.__module__, other.__qualname__)
    return dataclasses.is_dataclass(other) and names == (kind.__module__, kind.__qualname__)


def _slots(value: Any, names: dict[str, Any]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names if hasattr(value, name)}
