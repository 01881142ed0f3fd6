"""Rows from records: masking, conditions, decoding."""

from ottla.base.search.language import parse_filter
from ottla.base.search.matching import Matcher
from ottla.console.model.messages.decoding import decode_optional
from ottla.console.model.messages.masking import Masking
from ottla.console.model.messages.values import BrowseRequest, MessageRow
from ottla.wire.records.records import Record


class RowBuilder:
    """Builds the rows of one request; raises ConfigError for an invalid condition or rule."""

    def __init__(self, request: BrowseRequest) -> None:
        self._request = request
        self.conditions = (*request.conditions, *parse_filter(request.where))
        self._matcher = Matcher(self.conditions)
        self._masking = Masking(request.masking, request.topic)

    def can_match(self, body: bytes) -> bool:
        """Return False if no record of a batch matches. Conditions compare masked values, whose
        bytes may differ.
        """
        return bool(self._masking) or self._matcher.can_match(body)

    def build(
        self, partition: int, record: Record, *, is_log_append_time: bool
    ) -> MessageRow | None:
        """Return the row of a record, or None if it does not match the request."""
        request = self._request
        if request.until_ms is not None and record.timestamp >= request.until_ms:
            return None
        key, value, headers = record.key, record.value, record.headers
        if self._masking:
            key, value = self._masking.key(key), self._masking.value(value)
            headers = self._masking.headers(headers)
        if self.conditions and not self._matcher.matches(key, value, headers):
            return None
        limit = request.text_limit
        return MessageRow(
            topic=request.topic,
            partition=partition,
            offset=record.offset,
            timestamp_ms=record.timestamp,
            timestamp_type=_timestamp_type(record, is_log_append_time),
            key=decode_optional(key, request.key_format, text_limit=limit),
            value=decode_optional(value, request.value_format, text_limit=limit),
            headers=tuple(
                (name, decode_optional(raw, request.header_format, text_limit=limit))
                for name, raw in headers
            ),
            size_bytes=size_of(record),
        )


def size_of(record: Record) -> int:
    """Return the bytes of key, value and headers."""
    return (
        len(record.key or b"")
        + len(record.value or b"")
        + sum(len(name) + len(raw or b"") for name, raw in record.headers)
    )


def _timestamp_type(record: Record, is_log_append_time: bool) -> str:
    if record.timestamp < 0:
        return "unknown"
    return "logappend" if is_log_append_time else "create"
