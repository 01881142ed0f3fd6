"""Spark's functions of strings and bytes over Python's values; numbers are converted to strings."""

import base64
import functools
import hashlib
import operator
import zlib
from collections.abc import Callable
from typing import Any

from ottla.streams.expressions.column_operations import substring
from ottla.streams.expressions.java_patterns import of_java, of_like, replaced, split
from ottla.streams.expressions.spark_values import text


def _of_text(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of strings to convert operands that are numbers."""

    @functools.wraps(function)
    def apply(*values: Any) -> Any:
        return function(*map(text, values))

    return apply


def _first_text(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function whose first operand is a string, to convert it from a number."""

    @functools.wraps(function)
    def apply(value: Any, *arguments: Any) -> Any:
        return function(text(value), *arguments)

    return apply


def _stripped(method: Callable[..., str], source_first: bool) -> Callable[..., str]:
    """Return a function that trims spaces or the given characters."""

    def apply(*values: Any) -> str:
        first, *rest_of_arguments = map(text, values)
        if not rest_of_arguments:
            return method(first, " ")
        return (
            method(first, rest_of_arguments[0])
            if source_first
            else method(rest_of_arguments[0], first)
        )

    return apply


def _concat(*values: Any) -> Any:
    if values and all(isinstance(value, bytes) for value in values):
        return b"".join(values)
    if values and all(isinstance(value, list) for value in values):
        return [element for array in values for element in array]
    return "".join(map(text, values))


def _instr(value: str, part: str) -> int:
    return value.find(part) + 1


def locate(part: Any, value: Any, start: int | None = 1) -> int | None:
    """Return the position of a substring at or after `start`; 0 if it is not found."""
    if start is None:
        return 0
    if part is None or value is None:
        return None
    return text(value).find(text(part), start - 1) + 1 if start > 0 else 0


def _padded(value: str, length: int, pad: str) -> str:
    """Return the padding that extends a string to a length."""
    missing = max(0, length - len(value))
    return (pad * (missing // len(pad) + 1))[:missing] if pad else ""


def _left_pad(value: str, length: int, pad: Any = " ") -> str:
    return (_padded(value, length, text(pad)) + value[: max(0, length)])[: max(0, length)]


def _right_pad(value: str, length: int, pad: Any = " ") -> str:
    return (value + _padded(value, length, text(pad)))[: max(0, length)]


def _translate(value: str, characters: str, replacements: str) -> str:
    table: dict[int, str | None] = {}
    for number, character in enumerate(characters):
        table.setdefault(
            ord(character), replacements[number] if number < len(replacements) else None
        )
    return value.translate(table)


def _replace(value: str, searched: str, replacement: str = "") -> str:
    return value.replace(searched, replacement) if searched else value


def _split_part(value: Any, delimiter: Any, number: int) -> str:
    if number == 0:
        raise ValueError("split_part counts parts from 1, or from -1 at the end: not 0")
    parts = text(value).split(text(delimiter)) if text(delimiter) else [text(value)]
    index = number - 1 if number > 0 else len(parts) + number
    return parts[index] if 0 <= index < len(parts) else ""


def _substring_index(value: Any, delimiter: Any, count: int) -> str:
    whole_text, mark = text(value), text(delimiter)
    if not mark or not count:
        return ""
    parts = whole_text.split(mark)
    return mark.join(parts[:count] if count > 0 else parts[count:])


def _character(number: int) -> str:
    return "" if number < 0 else chr(number & 0xFF)


def _raw(value: Any) -> bytes:
    return value if isinstance(value, bytes) else text(value).encode()


def _sha2(value: Any, bits: int) -> str | None:
    names = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}
    return hashlib.new(names[bits], _raw(value)).hexdigest() if bits in names else None


def _matches(value: str, pattern: str) -> bool:
    return of_java(pattern).search(value) is not None


def _extracted(value: Any, pattern: Any, group: int = 1) -> str:
    match = of_java(text(pattern)).search(text(value))
    return "" if match is None else match[group] or ""


def _regexp_replace(value: str, pattern: str, replacement: str) -> str:
    return of_java(pattern).sub(lambda result: replaced(result, replacement), value)


def _like(value: str, pattern: str, escape: str = "\\") -> bool:
    return of_like(pattern, escape).fullmatch(value) is not None


def _ilike(value: str, pattern: str, escape: str = "\\") -> bool:
    return _like(value.lower(), pattern.lower(), escape)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, bytes) else len(text(value))


def concat_ws(separator: Any, *values: Any) -> str | None:
    """Join the values that are not missing; lists are joined item by item."""
    if separator is None:
        return None
    parts = (part for value in values for part in (value if isinstance(value, list) else (value,)))
    return text(separator).join(text(part) for part in parts if part is not None)


TEXTS: dict[str, Callable[..., Any]] = {
    "upper": _of_text(str.upper),
    "lower": _of_text(str.lower),
    "trim": _stripped(str.strip, False),
    "ltrim": _stripped(str.lstrip, False),
    "rtrim": _stripped(str.rstrip, False),
    "btrim": _stripped(str.strip, True),
    "length": _length,
    "octet_length": lambda value: len(_raw(value)),
    "bit_length": lambda value: 8 * len(_raw(value)),
    "concat": _concat,
    "contains": _of_text(operator.contains),
    "startswith": _of_text(str.startswith),
    "endswith": _of_text(str.endswith),
    "like": _of_text(_like),
    "ilike": _of_text(_ilike),
    "rlike": _of_text(_matches),
    "regexp_extract": _extracted,
    "regexp_replace": _of_text(_regexp_replace),
    "split": lambda value, pattern, limit=-1: split(text(value), text(pattern), limit),
    "replace": _of_text(_replace),
    "translate": _of_text(_translate),
    "reverse": lambda value: value[::-1] if isinstance(value, list) else text(value)[::-1],
    "repeat": _first_text(lambda value, count: value * max(0, count)),
    "lpad": _first_text(_left_pad),
    "rpad": _first_text(_right_pad),
    "instr": _of_text(_instr),
    "ascii": _of_text(lambda value: ord(value[0]) if value else 0),
    "chr": _character,
    "substring": _first_text(lambda value, start, length=1 << 31: substring(value, start, length)),
    "left": _first_text(lambda value, count: value[: max(0, count)]),
    "right": _first_text(lambda value, count: value[-count:] if count > 0 else ""),
    "substring_index": _substring_index,
    "split_part": _split_part,
    "md5": lambda value: hashlib.md5(_raw(value), usedforsecurity=False).hexdigest(),
    "sha": lambda value: hashlib.sha1(_raw(value), usedforsecurity=False).hexdigest(),
    "sha2": _sha2,
    "crc32": lambda value: zlib.crc32(_raw(value)),
    "base64": lambda value: base64.b64encode(_raw(value)).decode(),
}
"""Functions that return None if an operand is None."""
