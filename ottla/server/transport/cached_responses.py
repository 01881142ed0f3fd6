"""A cache of encoded responses that depend only on the request and the image of the cluster.

Clients repeat the same Metadata requests; the response to a request that was seen since the image
last changed is one lookup instead of an encoding of every partition. Bounded, and cleared by the
next image. With an authorizer the request contains its sender, and a change of access control lists
clears the cache.
"""

from typing import Any

_BYTES_MAX = 4 * 1024 * 1024
_RESPONSE_BYTES_MAX = 1024 * 1024


class CachedResponses:
    """Bodies of responses by request; `source` is the image from which they were created."""

    __slots__ = ("_responses", "_size_bytes", "_source")

    def __init__(self) -> None:
        self._source: object = None
        self._responses: dict[Any, bytes] = {}
        self._size_bytes = 0

    def find(self, source: object, request: tuple[Any, ...]) -> bytes | None:
        """Return the response created from this very image; None if no response is cached."""
        if source is not self._source:
            self.clear()
            self._source = source
            return None
        return self._responses.get(request)

    def clear(self) -> None:
        """Remove every response: one depends on something else that has changed."""
        self._responses.clear()
        self._size_bytes = 0

    def keep(self, source: object, request: tuple[Any, ...], response: bytes) -> None:
        """Store a response unless the image has changed since or it is too large.

        A request may be much larger than its response, and it is stored, too.
        """
        size_bytes = len(response) + sum(
            len(part) for part in request if isinstance(part, bytes | str)
        )
        if source is not self._source or size_bytes > _RESPONSE_BYTES_MAX:
            return
        if self._size_bytes + size_bytes > _BYTES_MAX:
            self.clear()
        self._responses[request] = response
        self._size_bytes += size_bytes
