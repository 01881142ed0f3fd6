"""Why a producer or a consumer has no connection: one line in the log within a second, and the
cause in the errors of its calls.

librdkafka retries without end, and reports each failed attempt in its own words. The first report
starts a thread, which connects as the commands do, so that the sentence is the same. It tries again
until the address responds, and ends then. A client whose connections work has no such thread.

Not done: with options of TLS or SASL that only librdkafka has, the sentence is librdkafka's.
"""

import logging
import re
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from ottla.base.errors import ConfigError, OttlaError
from ottla.client.brokers import Brokers
from ottla.client.config.names import IGNORED
from ottla.client.security.options import SECURITY_OPTIONS, security_of
from ottla.client.security.refusals import Reported, refusal

_log = logging.getLogger("ottla.client")
# The names of librdkafka's errors of connections.
_OF_CONNECTIONS = frozenset(
    {"_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_SSL", "_AUTHENTICATION", "_BAD_MSG"}
)
# As in "sasl_ssl://host:9093/2: Connect to … failed": the number is the id of an advertised broker.
_ADVERTISED = re.compile(r"(?:\w+://)?(?P<address>[^/\s]+)/(?P<id>[0-9]+): ")
_TRY_S = 3.0
_PAUSE_S, _PAUSE_S_MAX = 1.0, 5.0
_PENDING_MAX = 100
_BOOTSTRAP = ""
Connect = Callable[[str], None]
"""Connects to an address, or to any broker of the cluster for an empty text; OttlaError if that
fails.
"""


def own_brokers(options: Mapping[str, Any], timeout_s: float) -> Brokers | None:
    """Return connections of our own with a client's options under Kafka's names.

    None with options of TLS or SASL that only librdkafka has.
    """
    is_foreign = any(
        name.startswith(("sasl.", "ssl.")) and name not in SECURITY_OPTIONS and name not in IGNORED
        for name in options
    )
    if is_foreign:
        return None
    try:
        security = security_of(options)
    except ConfigError as error:
        _log.debug("only librdkafka can connect with these options: %s", error)
        return None
    return Brokers(
        options["bootstrap.servers"],
        timeout_s=timeout_s,
        client_id=str(options.get("client.id", "ottla")),
        is_proven=True,
        security=security,
    )


class _NoOwnConnection(Exception):
    """Only librdkafka can connect with the client's options."""


class ConnectionWatch:
    """What keeps one client from its brokers; `connect` defaults to a connection with `options`.

    librdkafka calls `pending.append` with its errors, in any thread; `take_reports` evaluates them.
    """

    def __init__(
        self, subject: str, options: Mapping[str, Any], connect: Connect | None = None
    ) -> None:
        self.pending: deque[Any] = deque(maxlen=_PENDING_MAX)
        self._subject = subject
        self._options = options
        self._connect = connect or self._connect_itself
        self._lock = threading.Lock()
        self._is_stopped = False
        # Ends the pause of the thread.
        self._wake = threading.Event()
        # The sentence of each address that does not respond; "" is the bootstrap servers.
        self._causes: dict[str, str] = {}
        self._suspects: dict[str, Any] = {}
        self._is_watching = False

    @property
    def is_watching(self) -> bool:
        """True while an address that does not respond is tried again."""
        return self._is_watching

    @property
    def is_undecided(self) -> bool:
        """True while the first attempt to find a cause is under way."""
        with self._lock:
            return self._is_watching and not self._causes and not self._is_stopped

    @property
    def cause(self) -> str | None:
        """Why there is no connection, in a sentence; None if nothing is known to be wrong."""
        with self._lock:
            return self._causes.get(_BOOTSTRAP) or next(iter(self._causes.values()), None)

    def because(self, text: str) -> str:
        """Return the text of an error, with the cause if there is one."""
        cause = self.cause
        return text if cause is None else f"{text}: {cause}"

    def take_reports(self) -> None:
        """Evaluate the errors that librdkafka has appended to `pending`."""
        while self.pending:
            self.report(self.pending.popleft())

    def report(self, error: Reported) -> None:
        """Look for the cause of an error of librdkafka, if it is one of connections."""
        if error.name() in _OF_CONNECTIONS:
            self.suspect(error)

    def suspect(self, error: Reported | None = None) -> None:
        """Look for the cause of a report, or of a call that waits, in the background."""
        text = "" if error is None else error.str()
        advertised = _ADVERTISED.match(text)
        name = _BOOTSTRAP if advertised is None else advertised["address"]
        with self._lock:
            if name not in self._suspects:
                self._wake.set()
            # The report of an attempt has more than the one that all have failed.
            if self._suspects.get(name) is None or "/" in text:
                self._suspects[name] = error
            starts = not self._is_watching and not self._is_stopped
            self._is_watching = self._is_watching or starts
        if starts:
            threading.Thread(
                target=_watch, args=(weakref.ref(self),), name="ottla-connection", daemon=True
            ).start()

    def stop(self) -> None:
        """End the thread soon; idempotent."""
        self._is_stopped = True
        self._wake.set()

    def _look(self) -> bool:
        """Try each suspect once; return False if none is left."""
        self._wake.clear()
        for name, error in list(self._suspects.items()):
            cause = self._cause_of(name, error)
            with self._lock:
                before = self._causes.get(name)
                if cause is not None:
                    self._causes[name] = cause
                else:
                    self._causes.pop(name, None)
                    self._suspects.pop(name, None)
                self._is_watching = bool(self._suspects)
            if self._is_stopped:
                return False
            if cause is not None and before is None:
                _log.warning("the %s cannot connect: %s; it keeps trying", self._subject, cause)
            elif cause is None and before is not None:
                _log.info("the %s can connect again", self._subject)
        return self._is_watching

    def _cause_of(self, name: str, error: Any) -> str | None:
        refused = None if error is None else refusal(error)
        try:
            self._connect(name)
        except OttlaError as failure:
            cause = str(refused or failure).rstrip(".")
            advertised = None if error is None or not name else _ADVERTISED.match(error.str())
            if advertised is None:
                return cause
            return f"broker {advertised['id']} is advertised at {name}: {cause}"
        except _NoOwnConnection:
            return None if error is None else str(refused or error.str())
        return None

    def _connect_itself(self, name: str) -> None:
        options = {**self._options, "bootstrap.servers": name or self._options["bootstrap.servers"]}
        brokers = own_brokers(options, _TRY_S)
        if brokers is None:
            raise _NoOwnConnection
        with brokers:
            brokers.any_connection()


def _watch(reference: "weakref.ref[ConnectionWatch]") -> None:
    """Try the suspects until all respond, or the client is closed or dropped."""
    pause_s = _PAUSE_S
    while True:
        reachability = reference()
        if reachability is None or not reachability._look():
            return
        wake = reachability._wake
        del reachability
        wake.wait(pause_s)
        pause_s = min(2 * pause_s, _PAUSE_S_MAX)
