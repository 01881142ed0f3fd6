"""GET requests to the HTTP ports of brokers, whose addresses only operators configure."""

import http.client
from collections.abc import Iterator
from urllib.parse import urlsplit

from ottla.base.errors import OttlaError

_LINE_BYTES_MAX = 16 << 20


class HttpError(OttlaError):
    """The HTTP port of a broker cannot be reached or rejects a request; `status` is 0 without one."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


def get_lines(base_url: str, path: str, timeout_s: float) -> Iterator[bytes]:
    """Yield the lines of a response; redirects are not followed.

    `timeout_s` bounds the wait for each line. Closing the iterator closes the connection.
    """
    address = urlsplit(base_url)
    if address.scheme != "http" or address.hostname is None:
        raise HttpError(f"{base_url!r} is not the address of an HTTP port: write http://HOST:PORT")
    connection = http.client.HTTPConnection(address.hostname, address.port or 80, timeout=timeout_s)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        if response.status != http.HTTPStatus.OK:
            reason = response.read(1000).decode("utf-8", "replace").strip()
            raise HttpError(f"{base_url} responds {response.status}: {reason}", response.status)
        while line := response.readline(_LINE_BYTES_MAX):
            yield line
    except (OSError, http.client.HTTPException) as error:
        raise HttpError(f"{base_url} does not respond: {error}") from error
    finally:
        connection.close()
