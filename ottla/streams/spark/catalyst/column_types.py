"""The types of Column expressions, known before any record is read. This module does not use Spark.

An expression with operands of known types can run in Spark's JVM. An expression whose operands may
have any type (`col("value.a") + 1` of JSON without a class) runs in Python, and so does one that
Python evaluates but Spark rejects (1 == "a").
"""

import dataclasses
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import UnionType
from typing import Any

from ottla.streams.expressions.columns import Column
from ottla.streams.serdes import Serde
from ottla.streams.serdes.serde import BYTES, DOUBLE, INTEGER, LONG, STRING


class RunsInPython(Exception):
    """An expression or a serde runs in Python; the message is the reason."""


class Scalar(Enum):
    """The type of a plain value."""

    INT = "a whole number"
    FLOAT = "a floating-point number"
    TEXT = "text"
    FLAG = "true or false"
    BYTES = "bytes"
    NOTHING = "None"
    LIST = "a list"
    DICT = "a dict"
    OPAQUE = "of any type"
    """Can be read, as lists and dicts can, but no expression may use it."""


@dataclass(frozen=True)
class Structure:
    """A value with named fields; `made` by an expression, or read from JSON as a dataclass."""

    fields: Mapping[str, "ColumnType"]
    made: bool = False
    optional: frozenset[str] = frozenset()
    """The fields that are objects of their own and may be None."""


ColumnType = Scalar | Structure

_NUMBERS = (Scalar.INT, Scalar.FLOAT)
_PLAIN: Mapping[Any, Scalar] = {
    int: Scalar.INT,
    float: Scalar.FLOAT,
    str: Scalar.TEXT,
    bool: Scalar.FLAG,
    Any: Scalar.OPAQUE,
    list: Scalar.OPAQUE,
    dict: Scalar.OPAQUE,
}
UNUSED = (Scalar.LIST, Scalar.DICT, Scalar.OPAQUE)
"""The types that no expression may use."""
_SERDES = (
    (STRING, Scalar.TEXT),
    (BYTES, Scalar.BYTES),
    (INTEGER, Scalar.INT),
    (LONG, Scalar.INT),
    (DOUBLE, Scalar.FLOAT),
)
_INT_BITS = 31


def type_read(serde: Serde[Any]) -> ColumnType:
    """Return the type of the values that a serde reads; RunsInPython if the JVM cannot read them."""
    for known_serde, kind in _SERDES:
        if serde is known_serde:
            return kind
    if serde.kind is not None:
        return _object(serde.kind)
    raise RunsInPython(f"Spark does not read {serde!r}")


def _object(kind: Any) -> Structure:
    """Return the type of a dataclass that JSON is read into."""
    name = getattr(kind, "__name__", repr(kind))
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        raise RunsInPython(f"Spark reads JSON into dataclasses, not into {name}")
    if not kind.__dataclass_params__.init or hasattr(kind, "__post_init__"):  # type: ignore[attr-defined]
        raise RunsInPython(f"{name} has its own __init__ or __post_init__")
    try:
        hints = typing.get_type_hints(kind)
    except (NameError, TypeError) as error:
        raise RunsInPython(f"the type hints of {name} are not known: {error}") from None
    fields: dict[str, ColumnType] = {}
    optional = set()
    for field_ in dataclasses.fields(kind):
        if not field_.init:
            raise RunsInPython(f"field {field_.name} of {name} is not read from JSON")
        fields[field_.name], is_optional = _field_type(name, field_.name, hints[field_.name])
        optional.update([field_.name] if is_optional else [])
    _check_names(list(fields), name)
    return Structure(fields, optional=frozenset(optional))


def _check_names(names: list[str], owner: str) -> None:
    """Raise RunsInPython for names that Spark reads differently.

    Spark may not distinguish upper and lower case.
    """
    if not names:
        raise RunsInPython(f"{owner} has no fields")
    if not all(name.isascii() and name.isidentifier() for name in names):
        raise RunsInPython(f"{owner} has fields whose names are not ASCII identifiers")
    if len({name.lower() for name in names}) < len(names):
        raise RunsInPython(f"{owner} has fields whose names differ only in case")


def _field_type(owner: str, name: str, hint: Any) -> tuple[ColumnType, bool]:
    """Return a field's type, and True if it may be None."""
    optional = False
    if typing.get_origin(hint) in (typing.Union, UnionType):
        kinds = [argument for argument in typing.get_args(hint) if argument is not type(None)]
        optional = len(kinds) < len(typing.get_args(hint))
        if len(kinds) > 1:
            raise RunsInPython(f"field {name} of {owner} is one of several types")
        hint = kinds[0]
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _object(hint), optional
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (list, dict) and inner[-1] in _PLAIN:
        return (Scalar.LIST if origin is list else Scalar.DICT), optional
    if hint not in _PLAIN:
        raise RunsInPython(f"field {name} of {owner} is {hint}")
    return _PLAIN[hint], optional


def type_of(expression: Column, key: ColumnType, value: ColumnType) -> ColumnType:
    """Return an expression's type over a key and a value; RunsInPython if it must run in Python."""
    operands = expression.operands
    match expression.operation:
        case "literal":
            return _literal(operands[0])
        case "field":
            return _field(expression, key if operands[0] == "key" else value)
        case "struct":
            pairs = zip(operands[::2], operands[1::2], strict=True)
            types = {name: type_of(operand, key, value) for name, operand in pairs}
            _check_names(list(types), "a struct")
            return Structure(types, made=True)
    results = [type_of(operand, key, value) for operand in operands]
    if expression.operation not in _RULES:
        raise RunsInPython(f"Spark has no {expression.operation}")
    kind = _RULES[expression.operation](expression, results)
    if kind is None:
        listed = " and ".join(_named(kind_of_operand) for kind_of_operand in results)
        raise RunsInPython(f"{expression.operation} of {listed} runs in Python")
    return kind


def _named(kind: ColumnType) -> str:
    return "an object" if isinstance(kind, Structure) else kind.value


def _literal(value: Any) -> Scalar:
    if value is None:
        return Scalar.NOTHING
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise RunsInPython("a literal has characters that UTF-8 cannot encode") from None
    return _PLAIN[type(value)]


def _field(expression: Column, kind: ColumnType) -> ColumnType:
    for name in expression.operands[1:]:
        if kind is Scalar.NOTHING:
            return kind
        if not isinstance(kind, Structure):
            raise RunsInPython(f"{expression} is a field of {_named(kind)}")
        if name not in kind.fields:
            # A property or method of the class, or a field that does not exist.
            raise RunsInPython(f"{expression} is not a field that is read")
        kind = kind.fields[name]
    if kind in UNUSED:
        raise RunsInPython(f"{expression} is {kind.value}")
    return kind


_Rule = Callable[[Column, list[ColumnType]], ColumnType | None]


def _arithmetic(_: Column, types: list[ColumnType]) -> ColumnType | None:
    if not all(operand_type in _NUMBERS for operand_type in types):
        return None
    return Scalar.FLOAT if Scalar.FLOAT in types else Scalar.INT


def _comparison(_: Column, types: list[ColumnType]) -> ColumnType | None:
    is_numbers = all(operand_type in _NUMBERS for operand_type in types)
    return Scalar.FLAG if is_numbers or _alike(types) is not None else None


def _alike(types: list[ColumnType]) -> ColumnType | None:
    """Return the common type of all that are not None; None if no such type exists."""
    scalars = {operand_type for operand_type in types if isinstance(operand_type, Scalar)} - {
        Scalar.NOTHING
    }
    if len(scalars) > 1 or not all(isinstance(operand_type, Scalar) for operand_type in types):
        return None
    return scalars.pop() if scalars else Scalar.NOTHING


def _takes(result: Scalar, *kinds: Scalar) -> _Rule:
    def rule(_: Column, types: list[ColumnType]) -> ColumnType | None:
        return result if all(operand_type in kinds for operand_type in types) else None

    return rule


def _strict(rule: _Rule) -> _Rule:
    def strict(expression: Column, result: list[ColumnType]) -> ColumnType | None:
        return Scalar.NOTHING if Scalar.NOTHING in result else rule(expression, result)

    return strict


def _substring(expression: Column, types: list[ColumnType]) -> ColumnType | None:
    bounds = expression.operands[1:]
    if not all(bound.operation == "literal" for bound in bounds):
        raise RunsInPython("substring with arguments that are not constants runs in Python")
    fits = all(abs(bound.operands[0]) >> _INT_BITS - 1 == 0 for bound in bounds)
    return Scalar.TEXT if types == [Scalar.TEXT, Scalar.INT, Scalar.INT] and fits else None


def _when(_: Column, types: list[ColumnType]) -> ColumnType | None:
    if types[0] not in (Scalar.FLAG, Scalar.NOTHING):
        return None
    return _alike(types[1:])


def _is_null(_: Column, types: list[ColumnType]) -> ColumnType | None:
    return Scalar.FLAG


_text_to_flag = _strict(_takes(Scalar.FLAG, Scalar.TEXT))
_text_to_text = _strict(_takes(Scalar.TEXT, Scalar.TEXT))
_flags = _takes(Scalar.FLAG, Scalar.FLAG, Scalar.NOTHING)

_RULES: Mapping[str, _Rule] = {
    **dict.fromkeys(("+", "-", "*", "%", "negate", "abs"), _strict(_arithmetic)),
    "/": _strict(_takes(Scalar.FLOAT, *_NUMBERS)),
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), _strict(_comparison)),
    "not": _strict(_takes(Scalar.FLAG, Scalar.FLAG)),
    "&": _flags,
    "|": _flags,
    "is_null": _is_null,
    "coalesce": lambda _, types: _alike(types),
    "when": _when,
    "concat": _text_to_text,
    "length": _strict(_takes(Scalar.INT, Scalar.TEXT, Scalar.BYTES)),
    **dict.fromkeys(("starts_with", "ends_with", "contains"), _text_to_flag),
    **dict.fromkeys(("trim", "upper", "lower"), _text_to_text),
    "substring": _strict(_substring),
}
