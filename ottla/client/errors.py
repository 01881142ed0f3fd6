"""What can go wrong between a client and a cluster, apart from an answer with an error code.

OttlaError
├── ApiError           the broker answered with an error code (base/errors.py)
└── ClientError
    ├── NotReachable   no connection could be made, or it ended too early
    ├── TimedOut       the answer did not come in time
    └── Unsupported    the broker speaks no version of the request that we speak
"""

from ottla.base.errors import OttlaError


class ClientError(OttlaError):
    """Root of the client's own errors."""


class NotReachable(ClientError):
    """No broker could be talked to; trying again may help, another address surely if it is wrong."""


class TimedOut(ClientError):
    """A broker took longer than it was given."""


class Unsupported(ClientError):
    """Client and broker share no version of a request."""
