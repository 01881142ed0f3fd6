"""Request and response headers, and whole requests and responses without their length prefix.

A request header is api key, api version, correlation id, client id and, in flexible versions,
tagged fields; the client id has a two-byte length in all versions, so that an unknown version can
get a response. A response header is the correlation id and, in flexible versions, tagged fields;
the one of ApiVersions never has them. Written by hand because every request passes through it.
"""

import struct
from typing import NamedTuple, TypeVar

from ottla.base.buffers import Buffer
from ottla.base.errors import ProtocolError
from ottla.wire.api_keys import APIS
from ottla.wire.fields import Message
from ottla.wire.primitives import OBJECT_BUDGET, skip_tags
from ottla.wire.schema import decoder, encoder

M = TypeVar("M", bound=Message)

# A client chooses its brokers itself, and responses may be much larger than requests.
RESPONSE_OBJECT_BUDGET = 100 * OBJECT_BUDGET

_REQUEST = struct.Struct(">hhih")
_CORRELATION = struct.Struct(">i")
_CORRELATION_AND_TAGS = struct.Struct(">iB")
_UNKNOWN = 32_768
"""The first flexible version of an unknown API: none."""
_NO_CLIENT_ID = -1


class _FlexibleSince(dict[int, int]):
    """The first flexible version of each API that has been requested."""

    def __missing__(self, api_key: int) -> int:
        if api_key not in APIS:
            return _UNKNOWN
        return self.setdefault(api_key, APIS[api_key].flexible_since)


_FLEXIBLE_SINCE = _FlexibleSince()


class RequestHeader(NamedTuple):
    """The fields before the body; `body_position` is where the body starts."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_position: int


def decode_request_header(buffer: Buffer, position: int = 0) -> RequestHeader:
    """Decode the header of a request; keys and versions are not checked. Raises ProtocolError.

    For an unknown API nothing after the client id is read, and `body_position` has no meaning.
    """
    try:
        api_key, api_version, correlation_id, size_bytes = _REQUEST.unpack_from(buffer, position)
        position += 10
        client_id = None
        if size_bytes >= 0:
            end = position + size_bytes
            client_id = str(buffer[position:end], "utf-8")
            position = end
        if api_version >= _FLEXIBLE_SINCE[api_key]:
            if buffer[position]:
                position, _ = skip_tags(buffer, position, OBJECT_BUDGET)
            else:
                position += 1
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ProtocolError(f"request header cannot be read: {error}") from error
    if position > len(buffer):
        raise ProtocolError("request header ends too early")
    return RequestHeader(api_key, api_version, correlation_id, client_id, position)


def encode_request_parts(
    message: Message, version: int, correlation_id: int, client_id: str | None
) -> list[Buffer]:
    """Encode header and body of a request; record bytes are buffers of their own."""
    encode = encoder(type(message), version)
    encoded = encode(message, request_header(message, version, correlation_id, client_id))
    return encoded if isinstance(encoded, list) else [encoded]


def request_header(
    message: Message, version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """Encode the header of a request."""
    client = b"" if client_id is None else client_id.encode()
    size_bytes = _NO_CLIENT_ID if client_id is None else len(client)
    header = _REQUEST.pack(message.API_KEY, version, correlation_id, size_bytes) + client
    return header + b"\0" if version >= message.FLEXIBLE_HEADER_SINCE else header


def encode_request(
    message: Message, version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """Encode header and body of a request as one bytes object."""
    return b"".join(encode_request_parts(message, version, correlation_id, client_id))


def encode_response_parts(correlation_id: int, message: Message, version: int) -> list[Buffer]:
    """Encode header and body of a response; record bytes are buffers of their own."""
    if version >= message.FLEXIBLE_HEADER_SINCE:
        header = _CORRELATION_AND_TAGS.pack(correlation_id, 0)
    else:
        header = _CORRELATION.pack(correlation_id)
    encoded = encoder(type(message), version)(message, header)
    return encoded if isinstance(encoded, list) else [encoded]


def decode_response(cls: type[M], version: int, buffer: Buffer) -> tuple[int, M]:
    """Decode a whole response; return correlation id and message. Raises ProtocolError."""
    if len(buffer) < _CORRELATION.size:
        raise ProtocolError("response header ends too early")
    (correlation_id,) = _CORRELATION.unpack_from(buffer)
    position = _CORRELATION.size
    if version >= cls.FLEXIBLE_HEADER_SINCE:
        try:
            position, _ = skip_tags(buffer, position, OBJECT_BUDGET)
        except IndexError as error:
            raise ProtocolError("response header ends too early") from error
    message, _ = decoder(cls, version)(buffer, position, RESPONSE_OBJECT_BUDGET)
    return correlation_id, message
