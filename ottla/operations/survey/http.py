"""GET requests to the HTTP ports of brokers, whose addresses only operators configure."""

from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

from ottla.base.errors import OttlaError
from ottla.net.web_requests import RejectedRequest, WebRequest, read_lines

# A record of 64 MiB, with escapes.
_LINE_BYTES_MAX = 256 << 20


class HttpError(OttlaError):
    """The HTTP port of a broker cannot be reached or rejects a request; `status` is 0 without one."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


def get_lines(base_url: str, path: str, timeout_s: float) -> Iterator[bytes]:
    """Yield the lines of a response; redirects are not followed.

    `timeout_s` bounds the wait for each line. Closing the iterator closes the connection.
    """
    if not base_url.startswith("http://") or urlsplit(base_url).hostname is None:
        raise HttpError(f"{base_url!r} is not the address of an HTTP port: write http://HOST:PORT")
    request = WebRequest(urlunsplit((*urlsplit(base_url)[:2], "", "", "")) + path)
    try:
        yield from read_lines(request, wait_s=timeout_s, bytes_max=_LINE_BYTES_MAX)
    except RejectedRequest as error:
        status = error.response.status
        reason = error.response.body.decode("utf-8", "replace").strip()
        raise HttpError(f"{base_url} responds {status}: {reason}", status) from error
    except OSError as error:
        raise HttpError(f"{base_url} does not respond: {error}") from error
