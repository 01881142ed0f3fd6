"""The filters of a search: which records match, and which batches cannot have a match. Pure.

The broker and `ottla topic search` (for brokers without the endpoint) use the same filters.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ottla.coordinators.consumer.regex.patterns import BytesPattern
from ottla.server.search.json_path import Condition, parse_condition, parse_document
from ottla.wire.records.records import Record

Test = Callable[[bytes | None], bool]
RecordTest = Callable[[Record], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """The conditions of a search, all of which must hold; empty ones are none."""

    key: str = ""
    value: str = ""
    key_regex: str = ""
    value_regex: str = ""
    headers: tuple[str, ...] = ()
    json: tuple[str, ...] = ()
    ignore_case: bool = False


class Matcher:
    """Compiled filters; raises ConfigError or ApiError for one that is invalid."""

    def __init__(self, filters: Filters) -> None:
        is_loose = filters.ignore_case
        tests: list[RecordTest] = []
        # A batch whose bytes lack one of these has no match.
        self._needles: list[bytes] = []
        for text, of in ((filters.key, _key), (filters.value, _value)):
            if text:
                tests.append(of(_contains(text, is_loose)))
                self._need(text, is_loose)
        for text, of in ((filters.key_regex, _key), (filters.value_regex, _value)):
            if text:
                tests.append(of(_found_by(BytesPattern(text, ignore_case=is_loose))))
        for text in filters.headers:
            name, _, part = text.partition("=")
            tests.append(partial(_has_header, name, _contains(part, is_loose) if part else None))
            self._need(name, False)
            self._need(part, is_loose)
        conditions = [parse_condition(text, ignore_case=is_loose) for text in filters.json]
        if conditions:
            # The most expensive test is the last one.
            tests.append(partial(_has_json, conditions))
        self._tests = tests

    def _need(self, text: str, is_loose: bool) -> None:
        if text and not is_loose:
            self._needles.append(text.encode())

    def can_match(self, body: bytes) -> bool:
        """Return False if no record in the encoded records of a batch matches."""
        return all(needle in body for needle in self._needles)

    def matches(self, record: Record) -> bool:
        """Return True if every filter holds."""
        return all(test(record) for test in self._tests)


def _key(test: Test) -> RecordTest:
    return lambda record: test(record.key)


def _value(test: Test) -> RecordTest:
    return lambda record: test(record.value)


def _contains(text: str, is_loose: bool) -> Test:
    if is_loose:
        return _found_by(BytesPattern(text, ignore_case=True, is_literal=True))
    needle = text.encode()
    return lambda data: data is not None and needle in data


def _found_by(pattern: BytesPattern) -> Test:
    return lambda data: data is not None and pattern.is_in(data)


def _has_header(name: str, test: Test | None, record: Record) -> bool:
    return any(
        header_name == name and (test is None or test(value))
        for header_name, value in record.headers
    )


def _has_json(conditions: Sequence[Condition], record: Record) -> bool:
    if record.value is None:
        return False
    document, is_json = parse_document(record.value)
    return is_json and all(condition.holds(document) for condition in conditions)
