"""The certificates of listeners with TLS, which are read again after a change, without a restart.

The broker looks at the files every few seconds, and when the options that name them are altered.
New connections use the new certificate; established ones keep theirs. A file that cannot be used is
an error in the log and a metric, and the former certificate stays.

At runtime, options may name files beside the broker's configured files only: who may alter
options must not read other files by them.
"""

import asyncio
import logging
import posixpath
import ssl
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from ottla.base.clock import Clock
from ottla.base.errors import ConfigError
from ottla.base.files import FileSystem
from ottla.base.options import Snapshot
from ottla.cluster.options import option_tables
from ottla.cluster.options.security_options import security_of
from ottla.net.tls import contexts, key_stores
from ottla.net.tls.files import Store, TlsFiles
from ottla.net.tls.stamps import CHECK_SECONDS, Stamps, stamps_of
from ottla.security.certificates import expiry_of

_log = logging.getLogger(__name__)


class Contexts(NamedTuple):
    """The contexts of one listener: for its connections, and for those to other brokers.

    `expires_at` is the earliest expiry of the key store's certificates, in seconds since the epoch;
    None if it is not known.
    """

    server: ssl.SSLContext
    client: ssl.SSLContext
    expires_at: float | None


@dataclass(slots=True)
class _State:
    """The contexts of a listener in use, and the files that were last read, with their stamps."""

    contexts: Contexts
    files: TlsFiles
    stamps: Stamps


def tls_of(options: Snapshot) -> dict[str, TlsFiles]:
    """Return the TLS of each listener that has it; ConfigError for a wrong option."""
    listeners = option_tables.parse_listeners(options)
    found = {listener.name: security_of(options, listener).tls for listener in listeners}
    return {name: tls for name, tls in found.items() if tls is not None}


def contexts_of(tls: TlsFiles) -> Contexts:
    """Read the files; ConfigError if one of them cannot be used."""
    return Contexts(
        contexts.server_context(tls), contexts.client_context(tls), _expires_at(tls.own)
    )


def _expires_at(store: Store) -> float | None:
    try:
        return min(map(expiry_of, key_stores.certificates_der(store)), default=None)
    except (OSError, ValueError):
        # OpenSSL has read it.
        return None


class Renewal(NamedTuple):
    """Files that replace a listener's files; `static` are the configured files.

    `is_for_brokers` is True for the listener on which brokers reach each other.
    """

    static: TlsFiles
    tls: TlsFiles
    is_for_brokers: bool

    def read(self, now: float) -> Contexts:
        """Read the files at a time in seconds since the epoch; ConfigError if they are refused.

        Unlike at the start, the broker has a certificate that works: an expired one is refused, and
        one that other brokers would refuse.
        """
        _check_folders(self.static, self.tls)
        result = contexts_of(self.tls)
        if result.expires_at is not None and result.expires_at <= now:
            text = datetime.fromtimestamp(result.expires_at, UTC).strftime("%Y-%m-%d %H:%M:%S")
            raise ConfigError(f"a certificate of {self.tls.chain} expired at {text} UTC")
        if self.is_for_brokers:
            contexts.check_acceptance(self.tls)
        return result


def _check_folders(static: TlsFiles, altered: TlsFiles) -> None:
    """Raise ConfigError if files are not beside the broker's configured files."""
    folders = sorted({_folder(path) for path in _paths(static)})
    for path in _paths(altered):
        if _folder(path) not in folders:
            raise ConfigError(
                f"{path} cannot be named while the broker runs: certificates must be in "
                f"{' or '.join(folders)}, beside the broker's configured files"
            )


def _paths(tls: TlsFiles) -> list[str]:
    return [path for path in (tls.chain, tls.authorities) if path]


def _folder(path: str) -> str:
    return posixpath.dirname(posixpath.normpath(path)) or "."


class Certificates:
    """The contexts of the listeners with TLS; `load` first, on the broker's loop.

    `on_renewed` is called with the name of a listener and its new context.
    """

    def __init__(self, static: Snapshot, files: FileSystem, clock: Clock) -> None:
        self.on_renewed: Callable[[str, ssl.SSLContext], None] = lambda name, context: None
        # Since the start, by listener.
        self.renewals: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self._static = tls_of(static)
        self._between_brokers = option_tables.inter_broker(static).name
        self._files = files
        self._clock = clock
        self._options = static
        # Options with an error that has been logged.
        self._refused: Snapshot | None = None
        self._states: dict[str, _State] = {}
        # Of two checks at a time, the former could replace what the latter has read.
        self._order = asyncio.Lock()

    @property
    def listeners(self) -> Iterable[str]:
        """The names of the listeners with TLS."""
        return self._static

    def expiries(self) -> Mapping[str, float]:
        """Return when the certificates of listeners expire, in seconds since the epoch."""
        times = {name: state.contexts.expires_at for name, state in self._states.items()}
        return {name: time for name, time in times.items() if time is not None}

    def server(self, name: str) -> ssl.SSLContext | None:
        """Return the context of a listener as of now; None without TLS."""
        state = self._states.get(name)
        return None if state is None else state.contexts.server

    def client(self) -> ssl.SSLContext | None:
        """Return the context of connections to other brokers as of now; None without TLS."""
        state = self._states.get(self._between_brokers)
        return None if state is None else state.contexts.client

    async def load(self, options: Snapshot) -> None:
        """Read the files at the start; ConfigError if the configured files cannot be used.

        If options were altered, and their files cannot be used, the configured files are used.
        """
        for name, tls in self._static.items():
            stamps = await self._stamps(tls)
            read = await self._files.in_background(lambda tls=tls: contexts_of(tls))  # type: ignore[misc]
            self._states[name] = _State(read, tls, stamps)
        self._options = options
        await self.check()

    async def watch(self) -> None:
        """Look at the files again and again."""
        while True:
            await self._clock.sleep(CHECK_SECONDS)
            await self.check()

    async def change(self, options: Snapshot) -> None:
        """Use altered options, and look at the files, also if the options are the same."""
        self._options = options
        await self.check()

    async def check(self) -> None:
        """Read the files of each listener that have changed."""
        async with self._order:
            await self._check()

    async def _check(self) -> None:
        try:
            current = tls_of(self._options)
        except ConfigError as error:
            if self._refused is not self._options:
                self._refused = self._options
                _log.error("altered options of TLS are not used error=%s", error)
            return
        for name, tls in current.items():
            state = self._states[name]
            stamps = await self._stamps(tls)
            if (tls, stamps) != (state.files, state.stamps):
                state.files, state.stamps = tls, stamps
                await self._renew(name, state, tls)

    async def _renew(self, name: str, state: _State, tls: TlsFiles) -> None:
        renewal = Renewal(self._static[name], tls, name == self._between_brokers)
        now = self._clock.time_ms() / 1000
        try:
            state.contexts = await self._files.in_background(lambda: renewal.read(now))
        except ConfigError as error:
            self.failures[name] += 1
            _log.error(
                "certificate not renewed, the former one stays listener=%s error=%s", name, error
            )
            return
        self.renewals[name] += 1
        _log.info("certificate renewed listener=%s file=%s", name, tls.chain)
        self.on_renewed(name, state.contexts.server)

    async def _stamps(self, tls: TlsFiles) -> Stamps:
        return await self._files.in_background(lambda: stamps_of(self._files, _paths(tls)))
