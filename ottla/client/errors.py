"""Errors between a client and a cluster, apart from error codes in responses.

OttlaError
├── ApiError           the broker responded with an error code (base/errors.py)
└── ClientError
    ├── NotReachable   no connection could be opened, or it was closed too early
    ├── TimedOut       the response did not arrive in time
    └── Unsupported    client and broker share no version of the request
"""

from ottla.base.errors import OttlaError


class ClientError(OttlaError):
    """Root of the client's own errors."""


class NotReachable(ClientError):
    """No broker could be reached. A retry may succeed, unless the address is wrong."""


class TimedOut(ClientError):
    """A broker did not respond within the timeout."""


class Unsupported(ClientError):
    """Client and broker share no version of a request."""
