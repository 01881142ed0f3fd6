"""Alerts of TLS handshakes that fail: the client learns why the broker refuses its certificate.

asyncio closes the connection of such a handshake without sending OpenSSL's alert. A client then
retries, because it cannot know that it was refused: Apache Kafka's, for a minute.
"""

import contextlib
import ssl
from typing import Any

from ottla.net.tls import ACCEPTED, Accepted


class AlertingObject(ssl.SSLObject):
    """The TLS of an accepted connection; set as `sslobject_class` of the context."""

    _alerts: tuple[Accepted, ssl.MemoryBIO] | None = None

    @classmethod
    def _create(cls, incoming: Any, outgoing: Any, *rest: Any, **named: Any) -> "AlertingObject":
        created = super()._create(incoming, outgoing, *rest, **named)  # type: ignore[misc]
        assert isinstance(created, cls)
        accepted = ACCEPTED.get()
        if accepted is not None:
            created._alerts = accepted, outgoing
        return created

    def do_handshake(self) -> None:
        """Continue the handshake; send the alert if it fails."""
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError:
            if self._alerts is not None:
                accepted, outgoing = self._alerts
                # The client may have disconnected, and the loop closes the connection in any case.
                with contextlib.suppress(OSError):
                    accepted.send(outgoing.read())
            raise
