"""The fields of the produce form: read as a request, and filled with a record. Pure.

A record that fills the form is sent again byte by byte unless the user edits it: bytes that a
browser would change are shown as hex digits. Browsers change the ends of lines.
"""

import json

from ottla.base.errors import ConfigError
from ottla.console import formats
from ottla.console.fields import Fields
from ottla.console.model.messages.decoding import CONTROLS, WIRE_PREFIX, Decoded, Format
from ottla.console.model.messages.values import MessageRow
from ottla.console.model.producing import InputFormat, InputHeader, ProduceRequest
from ottla.console.pages.topics.messages import time_field
from ottla.operations.numbers import INT_MAX

# A form has 4 MiB at most; a browser writes three bytes for most bytes that are not letters.
AGAIN_MAX_BYTES = 1 << 20


def read_form(form: Fields, topic: str) -> ProduceRequest:
    """Return the request of the form of a topic's page; ConfigError names a wrong value."""
    value = form.get("value", "").replace("\r\n", "\n")
    return ProduceRequest(
        topic=form.text("topic", topic),
        value=value.replace("\n", "\r\n") if form.is_checked("crlf") else value,
        value_format=_format(form, "value_format"),
        key=form.get("key", ""),
        key_format=_format(form, "key_format"),
        headers=read_headers(form.get("headers", "")),
        partition=form.integer("partition", least=0, most=INT_MAX)
        if form.text("partition")
        else None,
        timestamp_ms=time_field(form, "timestamp"),
        codec=form.text("codec", "none"),
        count=form.integer("count", 1, least=1),
        has_templates=form.is_checked("templates"),
    )


def fields_of(row: MessageRow) -> dict[str, str]:
    """Return the fields of the form that sends a record again to its partition.

    ConfigError if the record is too large for a form.
    """
    if row.size_bytes > AGAIN_MAX_BYTES:
        raise ConfigError(
            f"{row.topic}-{row.partition} at offset {row.offset} has {formats.size(row.size_bytes)}, "
            f"and this form takes {formats.size(AGAIN_MAX_BYTES)} at most: use a producer"
        )
    value, lines = row.value, "" if row.value is None else row.value.text
    has_crlf = "\r\n" in lines and not set("\r\n") & set(lines.replace("\r\n", ""))
    if value is not None and (_is_special(value) or ("\r" in lines and not has_crlf)):
        value, has_crlf = _as_hex(value), False
    key = row.key
    if key is not None and (_is_special(key) or set("\r\n") & set(key.text)):
        key = _as_hex(key)
    return {
        "topic": row.topic,
        "partition": str(row.partition),
        "key_format": _format_of(key).value,
        "key": key.text if key else "",
        "value_format": _format_of(value).value,
        "value": value.text if value else "",
        "crlf": "1" if has_crlf else "",
        "headers": "\n".join(header_line(_header(*header)) for header in row.headers),
    }


def read_headers(text: str) -> tuple[InputHeader, ...]:
    """Return the headers of a text area: a line is `name: value`, `name`, or JSON.

    JSON is `"name": "value"`, or `"name": {"hex": "00ff"}` with a format and a text of that format.
    """
    return tuple(_read_header(line.strip()) for line in text.splitlines() if line.strip())


def header_line(header: InputHeader) -> str:
    """Return a header as a line that `read_headers` reads: the simple form if that is possible."""
    name, value = header.name, header.value
    if header.value_format is InputFormat.TEXT:
        line = name if value is None else f"{name}: {value}"
        is_simple = line.isprintable() and not line.lstrip().startswith((":", '"'))
        if is_simple and read_headers(line) == (header,):
            return line
    elif value is not None:
        return f"{json.dumps(name)}: {json.dumps({header.value_format.value: value})}"
    return f"{json.dumps(name)}: {json.dumps(value)}"


def _read_header(line: str) -> InputHeader:
    if line.startswith('"'):
        try:
            return _json_header(line)
        except (ValueError, RecursionError):
            raise _malformed(line) from None
    name, colon, value = line.partition(":")
    if not name.strip():
        raise _malformed(line)
    return InputHeader(name.strip(), value.strip() if colon else None)


def _json_header(line: str) -> InputHeader:
    name, end = json.JSONDecoder().raw_decode(line)
    colon, value = line[end:].lstrip()[:1], line[end:].lstrip()[1:]
    if colon != ":":
        raise ValueError
    content = json.loads(value)
    if content is None or isinstance(content, str):
        return InputHeader(name, content)
    if not isinstance(content, dict) or len(content) != 1:
        raise ValueError
    ((chosen, text),) = content.items()
    if not isinstance(text, str):
        raise ValueError
    return InputHeader(name, text, InputFormat(chosen))


def _malformed(line: str) -> ConfigError:
    return ConfigError(
        f'cannot read header {line[:80]!r}: write name: value, or "name": {{"hex": "00ff"}} for bytes'
    )


def _format(form: Fields, name: str) -> InputFormat:
    text = form.text(name, InputFormat.TEXT)
    try:
        return InputFormat(text)
    except ValueError:
        options = ", ".join(InputFormat)
        raise ConfigError(f"unknown format {text!r} in field {name!r}: use {options}") from None


def _header(name: str, value: Decoded | None) -> InputHeader:
    if value is None:
        return InputHeader(name, None)
    if value.schema_id is not None:
        value = _as_hex(value)
    chosen = _format_of(value)
    is_text = chosen is InputFormat.JSON
    return InputHeader(name, value.text, InputFormat.TEXT if is_text else chosen)


def _format_of(value: Decoded | None) -> InputFormat:
    return InputFormat.NULL if value is None else InputFormat(value.format.value)


def _is_special(value: Decoded) -> bool:
    """Return True for a text that a browser changes, and for one with a schema's id in front."""
    is_text = value.format in (Format.TEXT, Format.JSON)
    return is_text and (value.schema_id is not None or bool(CONTROLS.search(value.text)))


def _as_hex(value: Decoded) -> Decoded:
    """Return text or JSON as hex digits, with the schema's id in front of it."""
    if value.format not in (Format.TEXT, Format.JSON):
        return value
    frame = b"" if value.schema_id is None else WIRE_PREFIX + value.schema_id.to_bytes(4, "big")
    return Decoded(Format.HEX, (frame + value.text.encode()).hex(), value.size_bytes)
