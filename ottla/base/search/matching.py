"""The matcher of filters: which records match, and which batches cannot have a match. Pure.

Texts are compared as bytes of UTF-8, in keys and values that are not UTF-8, too. Regular
expressions are RE2's.
"""

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ottla.base.errors import ConfigError
from ottla.base.search.conditions import CONDITIONS_MAX, Condition, Field, JsonComparison, Operator
from ottla.base.search.language import literal_of
from ottla.base.text.json_paths import JsonPath
from ottla.base.text.patterns import Expression, escaped

Headers = Sequence[tuple[str, bytes | None]]

_Test = Callable[[bytes | None], bool]
_BytesTest = Callable[[bytes], bool]
_Check = Callable[["_Record"], bool]
_WHOLE = re.compile(r"[+-]?0{0,20}[0-9]{1,19}")
_NO_JSON = object()
_TEXTS = (Operator.CONTAINS, Operator.EQUALS, Operator.STARTS_WITH)
_OF_TEXTS = {
    JsonComparison.CONTAINS: Operator.CONTAINS,
    JsonComparison.STARTS_WITH: Operator.STARTS_WITH,
    JsonComparison.REGEX: Operator.REGEX,
}
_ORDERS: Mapping[JsonComparison, Callable[[Any, Any], Any]] = {
    JsonComparison.LESS: operator.lt,
    JsonComparison.LESS_OR_EQUAL: operator.le,
    JsonComparison.GREATER: operator.gt,
    JsonComparison.GREATER_OR_EQUAL: operator.ge,
}


class Matcher:
    """Compiled conditions, all of which must match; ConfigError for one that is invalid."""

    def __init__(self, conditions: Sequence[Condition]) -> None:
        if len(conditions) > CONDITIONS_MAX:
            raise ConfigError(
                f"{len(conditions)} conditions are too many: use up to {CONDITIONS_MAX}"
            )
        checks = [(_is_of_json(condition), _compile(condition)) for condition in conditions]
        # The most expensive tests are the last ones.
        self._checks = [check for _, check in sorted(checks, key=operator.itemgetter(0))]
        # A batch whose bytes lack one of these has no match.
        self._needles = [needle for row in conditions for needle in _needles(row)]

    def can_match(self, body: bytes) -> bool:
        """Return False if no record in the encoded records of a batch matches."""
        return all(needle in body for needle in self._needles)

    def matches(self, key: bytes | None, value: bytes | None, headers: Headers) -> bool:
        """Return True if every condition holds for a record with these parts."""
        record = _Record(key, value, headers)
        return all(check(record) for check in self._checks)


class _Record:
    """The parts of a record; several conditions on one part share its document."""

    __slots__ = ("_document", "_parsed", "headers", "key", "value")

    def __init__(self, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        self.key, self.value, self.headers = key, value, headers
        self._parsed: bytes | None = None

    def parts(self, condition: Condition) -> Iterator[bytes | None]:
        """Yield the parts that a condition compares."""
        if condition.field in (Field.KEY, Field.ANY):
            yield self.key
        if condition.field in (Field.VALUE, Field.ANY):
            yield self.value
        if condition.field in (Field.HEADER, Field.ANY):
            # The name is for conditions on headers only.
            chosen = condition.header if condition.field is Field.HEADER else ""
            for name, value in self.headers:
                if not chosen or name == chosen:
                    yield value

    def document(self, part: bytes | None) -> Any:
        """Return the JSON value of a part, or _NO_JSON.

        JSON with a schema has the header of a schema registry before it.
        """
        if part is None:
            return _NO_JSON
        if part is not self._parsed:
            self._parsed = part
            try:
                self._document = json.loads(_unframed(part))
            except (ValueError, RecursionError):
                self._document = _NO_JSON
        return self._document


def _unframed(part: bytes) -> bytes:
    """Return JSON without the id of its schema: a zero byte and four more (schema registries)."""
    is_framed = part[:1] == b"\x00" and part[5:].lstrip()[:1] in (b"{", b"[")
    return part[5:] if is_framed else part


def _is_of_json(condition: Condition) -> bool:
    return condition.operator is Operator.JSON_PATH


def _compile(condition: Condition) -> _Check:
    expected = not condition.negated
    if _is_of_json(condition):
        select, compare = JsonPath(condition.path).select, _json_comparison(condition)

        def holds(record: _Record, part: bytes | None) -> bool:
            document = record.document(part)
            return document is not _NO_JSON and any(map(compare, select(document)))

        if condition.field is Field.VALUE:
            return lambda record: holds(record, record.value) is expected
        return lambda record: (
            any(holds(record, part) for part in record.parts(condition)) is expected
        )
    test = _test(condition)
    if condition.field is Field.KEY:
        return lambda record: test(record.key) is expected
    if condition.field is Field.VALUE:
        return lambda record: test(record.value) is expected
    return lambda record: any(map(test, record.parts(condition))) is expected


def _test(condition: Condition) -> _Test:
    if condition.operator is Operator.IS_NULL:
        return lambda raw: raw is None
    if condition.operator is Operator.EXISTS:
        return lambda raw: True if condition.field is Field.HEADER else raw is not None
    if not condition.text and condition.operator is not Operator.EQUALS:
        raise ConfigError(
            f"the condition {condition.operator!s} on the {condition.field!s} needs a text"
        )
    test = _text_test(condition.operator, condition.text, condition.ignores_case)
    numbers = _packed(condition.text) if condition.operator is Operator.EQUALS else ()
    return lambda raw: raw is not None and (test(raw) or raw in numbers)


def _text_test(compared: Operator, text: str, ignores_case: bool) -> _BytesTest:
    """Return a comparison of bytes with a text."""
    try:
        needle = text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"{text!r} is not a valid text: {error.reason}") from error
    if compared is Operator.REGEX:
        return Expression(text, ignores_case=ignores_case).is_in
    if ignores_case:
        form = {Operator.EQUALS: r"\A(?:%s)\z", Operator.STARTS_WITH: r"\A(?:%s)"}
        return Expression(form.get(compared, "%s") % escaped(text), ignores_case=True).is_in
    if compared is Operator.EQUALS:
        return lambda raw: raw == needle
    if compared is Operator.STARTS_WITH:
        return lambda raw: raw.startswith(needle)
    return lambda raw: needle in raw


def _packed(text: str) -> tuple[bytes, ...]:
    """Return the serialized forms of an integer, as pages show them; () for other texts."""
    if not _WHOLE.fullmatch(text):
        return ()
    number = int(text)
    return tuple(
        number.to_bytes(size, "big", signed=True)
        for size in (4, 8)
        if -(1 << 8 * size - 1) <= number < 1 << 8 * size - 1
    )


def _json_comparison(condition: Condition) -> Callable[[Any], bool]:
    comparison, text = condition.comparison, condition.text
    if comparison is JsonComparison.EXISTS:
        return lambda value: True
    if comparison in _OF_TEXTS:
        return _of_text(_text_test(_OF_TEXTS[comparison], text, condition.ignores_case))
    operand = literal_of(text)
    if comparison in _ORDERS:
        kind, order = _kind(operand.value), _ORDERS[comparison]
        if kind not in (float, str):
            raise ConfigError(
                f"{condition.path} {comparison} {text}: only numbers and texts have an order"
            )
        return lambda value: _kind(value) is kind and bool(order(value, operand.value))
    is_equal = _equality(operand.value, operand.text, condition.ignores_case)
    expected = comparison is JsonComparison.EQUALS
    return lambda value: is_equal(value) is expected


def _of_text(test: _BytesTest) -> Callable[[Any], bool]:
    # A text of JSON may have half of a surrogate pair.
    return lambda value: isinstance(value, str) and test(value.encode("utf-8", "surrogatepass"))


def _equality(operand: Any, text: str, ignores_case: bool) -> Callable[[Any], bool]:
    kind = _kind(operand)
    if kind is str:
        if ignores_case:
            return _of_text(_text_test(Operator.EQUALS, operand, True))
        return lambda value: isinstance(value, str) and value == operand
    if kind is float:
        # Ids are numbers for some producers, and texts for others.
        return lambda value: (_kind(value) is kind and value == operand) or value == text

    def is_equal(value: Any) -> bool:
        try:
            return _kind(value) is kind and bool(value == operand)
        except RecursionError:
            return False

    return is_equal


def _kind(value: Any) -> type:
    """Return the type of a JSON value; in Python, true would be equal to 1."""
    if isinstance(value, bool):
        return bool
    return float if isinstance(value, int | float) else type(value)


def _needles(condition: Condition) -> Iterator[bytes]:
    """Yield bytes that the encoded records of every batch with a match contain."""
    if condition.negated:
        return
    # Bytes of a name that are not UTF-8 have become U+FFFD.
    if condition.field is Field.HEADER and condition.header and "\ufffd" not in condition.header:
        yield condition.header.encode("utf-8", "surrogatepass")
    is_exact = condition.operator in _TEXTS and not condition.ignores_case
    # The text of an integer is not in its serialized form.
    is_number = condition.operator is Operator.EQUALS and _packed(condition.text)
    if is_exact and condition.text and not is_number:
        yield condition.text.encode()
