"""Rows from records: masking, conditions, decoding."""

from dataclasses import replace

from ottla.base.search.language import parse_filter
from ottla.base.search.matching import Matcher
from ottla.client.schemas.values import SchemaValues
from ottla.console.model.messages.decoding import Decoded, Format, decode_optional
from ottla.console.model.messages.masking import Masking
from ottla.console.model.messages.values import BrowseRequest, MessageRow, Seek
from ottla.wire.records.records import Record


class RowBuilder:
    """Builds the rows of one request; raises ConfigError for an invalid condition or rule."""

    def __init__(self, request: BrowseRequest, schemas: SchemaValues | None = None) -> None:
        self._request = request
        self._schemas = schemas or SchemaValues()
        self.conditions = (*request.conditions, *parse_filter(request.where))
        self._matcher = Matcher(self.conditions)
        self._masking = Masking(request.masking, request.topic)

    def can_match(self, body: bytes) -> bool:
        """Return False if no record of a batch matches. Conditions compare masked values, and those
        that a registry's schemas make readable: their bytes differ.
        """
        is_other = bool(self._masking) or self._schemas.has_registry
        return is_other or self._matcher.can_match(body)

    def build(
        self, partition: int, record: Record, *, is_log_append_time: bool
    ) -> MessageRow | None:
        """Return the row of a record, or None if it does not match the request."""
        request = self._request
        if request.until_ms is not None and record.timestamp >= request.until_ms:
            return None
        if request.seek is Seek.TIMESTAMP and record.timestamp < request.timestamp_ms:
            # After the first record at that time there may be older ones.
            return None
        key, key_schema = self._readable(record.key)
        value, value_schema = self._readable(record.value)
        headers = record.headers
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
            key=self._shown(record.key, key, key_schema, request.key_format),
            value=self._shown(record.value, value, value_schema, request.value_format),
            headers=tuple(
                (name, decode_optional(raw, request.header_format, text_limit=limit))
                for name, raw in headers
            ),
            size_bytes=size_of(record),
        )

    def _readable(self, raw: bytes | None) -> tuple[bytes | None, str]:
        """Return a key or value as conditions and masks see it, and the name of its schema."""
        readable = self._schemas.read(raw) if self._request.decodes_schemas else None
        if readable is None:
            return raw, ""
        text = readable.text
        return raw if text is None else text.encode("utf-8", "replace"), readable.schema

    def _shown(
        self, stored: bytes | None, readable: bytes | None, schema: str, chosen: Format
    ) -> Decoded | None:
        """Return a key or value in a format: as it is stored, unless that is JSON or masked."""
        is_stored = chosen not in (Format.AUTO, Format.JSON) and not self._masking
        raw = stored if is_stored else readable
        decoded = decode_optional(raw, chosen, text_limit=self._request.text_limit)
        if decoded is None or not schema or stored is None:
            return decoded
        schema_id = int.from_bytes(stored[1:5], "big")
        return replace(decoded, size_bytes=len(stored), schema_id=schema_id, schema=schema)


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
