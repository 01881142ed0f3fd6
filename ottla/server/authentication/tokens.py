"""Delegation tokens as this broker knows them: kept in the tree, and current on every broker.

A change is written with a notification in one step; brokers follow the notifications. Tokens that
have expired are removed by each broker. Only brokers with delegation.token.secret.key import this
module. Follows DelegationTokenManagerZk and ZkNodeChangeNotificationListener of Apache Kafka 3.9,
except that a token that was deleted before its renewal is not renewed but reported as not found.
"""

import asyncio
import contextlib
import logging
from collections.abc import Collection, Iterable
from typing import NamedTuple

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.options import Snapshot
from ottla.base.rng import Rng
from ottla.base.tasks import Tasks
from ottla.base.uuids import random_uuid, uuid_text
from ottla.cluster.token_znodes import TokenChangeNode, TokenNode
from ottla.cluster.zk.port import (
    Coordination,
    CoordinationError,
    Create,
    Delete,
    NoNode,
    Operation,
    SessionState,
    SetData,
)
from ottla.cluster.znodes import DelegationTokensNode, UnreadableNode
from ottla.security import tokens
from ottla.security.exchanges import ScramLogin
from ottla.security.mock_credentials import mock
from ottla.security.principal import Principal
from ottla.security.scram import ITERATIONS_MIN, ScramCredential, ScramMechanism
from ottla.security.tokens import Lifetimes, Token

_log = logging.getLogger(__name__)

# How long a notification stays for brokers that have not read it.
NOTIFICATION_SECONDS = 15 * 60.0
_CHECK_SECONDS_MAX = 1e9


class Settings(NamedTuple):
    """The secret key of the cluster, the lives of tokens, and the pause between two checks."""

    secret_key: str
    lifetimes: Lifetimes
    check_seconds: float

    @classmethod
    def from_options(cls, secret_key: str, options: Snapshot) -> "Settings":
        """Return the settings of a broker with this key."""
        lifetimes = Lifetimes(
            options.integer("delegation.token.max.lifetime.ms"),
            options.integer("delegation.token.expiry.time.ms"),
        )
        check_ms = options.integer("delegation.token.expiry.check.interval.ms")
        return cls(secret_key, lifetimes, check_ms / 1000)


class IssuedToken(NamedTuple):
    """A token with its HMAC."""

    token: Token
    hmac: bytes


class DelegationTokens:
    """Lives on the broker's loop; `start` again after the session was lost and a new one begun."""

    def __init__(self, settings: Settings, clock: Clock, rng: Rng, tasks: Tasks) -> None:
        self._settings = settings
        self._clock = clock
        self._rng = rng
        self._tasks = tasks
        self._session: Coordination | None = None
        self._tokens: dict[str, Token] = {}
        self._ids: dict[bytes, str] = {}
        self._credentials: dict[tuple[str, ScramMechanism], ScramCredential] = {}
        # When notifications were first seen, by the monotonic clock in seconds.
        self._seen: dict[str, float] = {}
        # Held while tokens are read or written.
        self._lock = asyncio.Lock()
        self._is_catching_up = False
        self._is_checking = False

    # -- requests ---------------------------------------------------------------------------------

    async def create(
        self,
        owner: Principal,
        requester: Principal,
        renewers: Collection[Principal],
        lifetime_ms: int,
    ) -> IssuedToken:
        """Issue a token; a lifetime that is not positive is the longest one."""
        async with self._lock:
            token = tokens.issued(
                uuid_text(random_uuid(self._rng)),
                owner,
                requester,
                renewers,
                lifetime_ms,
                self._settings.lifetimes,
                self._clock.time_ms(),
            )
            path, data = TokenNode.path(token.token_id), TokenNode.encode(token)
            await self._write(token.token_id, Create(path, data))
            self._keep(token)
        _log.info("delegation token created id=%s owner=%s", token.token_id, owner.text())
        return self._issued(token)

    async def renew(self, principal: Principal, hmac: bytes, period_ms: int) -> int:
        """Postpone the expiry of a token, by default if the period is negative; return its time."""
        async with self._lock:
            token = tokens.renewed(
                self._of_hmac(hmac),
                principal,
                period_ms,
                self._settings.lifetimes,
                self._clock.time_ms(),
            )
            await self._change(token)
        return token.expiry_ms

    async def expire(self, principal: Principal, hmac: bytes, period_ms: int) -> int:
        """Change when a token expires, or delete it if the period is negative; return the time."""
        async with self._lock:
            token, now_ms = self._of_hmac(hmac), self._clock.time_ms()
            changed = tokens.expired(token, principal, period_ms, now_ms)
            if changed is not None:
                await self._change(changed)
                return changed.expiry_ms
            await self._remove(token)
        return now_ms

    def describe(self, principals: Collection[Principal] | None) -> list[IssuedToken]:
        """Return the tokens that concern one of the principals; all of them if it is None."""
        return [
            self._issued(token)
            for token in self._tokens.values()
            if principals is None or any(map(token.concerns, principals))
        ]

    def id_of(self, hmac: bytes) -> str:
        """Return the id of the token with an HMAC; empty if no token has it."""
        return self._ids.get(hmac, "")

    def login(self, mechanism: ScramMechanism, token_id: str) -> ScramLogin:
        """Return the login by the id of a token, with a mock credential if the id is unknown.

        The first login with a token takes longer than one with an unknown id. That does not help
        clients to find ids, which are random.
        """
        token = self._tokens.get(token_id)
        salt = tokens.salt_of(self._settings.secret_key, mechanism, token_id)
        if token is None or not token.owner.is_user:
            return ScramLogin("", mock(mechanism, salt, ITERATIONS_MIN))
        key = token_id, mechanism
        if key not in self._credentials:
            hmac = self._hmac(token_id)
            self._credentials[key] = tokens.scram_credential(mechanism, hmac, salt)
        return ScramLogin(token.owner.name, self._credentials[key], token.expiry_ms)

    # -- values in memory -------------------------------------------------------------------------

    def _hmac(self, token_id: str) -> bytes:
        return tokens.hmac_of(self._settings.secret_key, token_id)

    def _issued(self, token: Token) -> IssuedToken:
        return IssuedToken(token, self._hmac(token.token_id))

    def _of_hmac(self, hmac: bytes) -> Token:
        token = self._tokens.get(self._ids.get(hmac, ""))
        if token is None:
            raise ApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        return token

    def _keep(self, token: Token) -> None:
        self._tokens[token.token_id] = token
        self._ids[self._hmac(token.token_id)] = token.token_id

    def _forget(self, token_id: str) -> None:
        self._tokens.pop(token_id, None)
        self._ids.pop(self._hmac(token_id), None)
        for mechanism in ScramMechanism:
            self._credentials.pop((token_id, mechanism), None)

    # -- writing ----------------------------------------------------------------------------------

    async def _change(self, token: Token) -> None:
        path, data = TokenNode.path(token.token_id), TokenNode.encode(token)
        await self._write(token.token_id, SetData(path, data))
        self._keep(token)
        _log.info("delegation token changed id=%s expiry_ms=%d", token.token_id, token.expiry_ms)

    async def _remove(self, token: Token) -> None:
        await self._write(token.token_id, Delete(TokenNode.path(token.token_id)))
        self._forget(token.token_id)
        _log.info("delegation token removed id=%s owner=%s", token.token_id, token.owner.text())

    async def _write(self, token_id: str, operation: Operation) -> None:
        """Write a token and its notification, both or neither."""
        assert self._session is not None, "the tokens have not been started"
        notification = Create(
            TokenChangeNode.PREFIX, TokenChangeNode.encode(token_id), sequential=True
        )
        try:
            await self._session.multi([operation, notification])
        except NoNode as error:
            # Another broker has removed it.
            self._forget(token_id)
            raise ApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND) from error
        except CoordinationError as error:
            _log.warning("delegation token not written id=%s error=%s", token_id, error)
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT) from error

    async def remove_expired(self) -> None:
        """Remove the tokens that have expired."""
        async with self._lock:
            now_ms = self._clock.time_ms()
            for token in list(self._tokens.values()):
                if token.has_expired(now_ms):
                    try:
                        await self._remove(token)
                    except ApiError as error:
                        # Removed by another broker, or tried again at the next check.
                        _log.info("expired token kept id=%s error=%s", token.token_id, error)

    async def _check(self) -> None:
        pause = min(self._settings.check_seconds, _CHECK_SECONDS_MAX)
        while True:
            await self.remove_expired()
            await self._clock.sleep(pause)

    # -- reading ----------------------------------------------------------------------------------

    async def start(self, session: Coordination) -> None:
        """Read every token and follow changes; raises ConnectionSuspended or SessionLost."""
        self._session = session
        session.on_session(self._session_changed)
        for path in (DelegationTokensNode.PATH, TokenChangeNode.PARENT):
            await session.ensure(path)
        # The watch is set before the reading, so that nothing falls between the two.
        self._note(await session.children(TokenChangeNode.PARENT, self._changed))
        async with self._lock:
            names = await session.children(DelegationTokensNode.PATH)
            for token_id in {*self._tokens, *names}:
                await self._read(session, token_id)
        if not self._is_checking:
            self._is_checking = True
            self._tasks.supervise(self._check, "removal of expired delegation tokens")

    def _note(self, names: Iterable[str]) -> list[str]:
        """Return the notifications that have not been seen, in their order."""
        now = self._clock.monotonic()
        new = sorted(name for name in names if name not in self._seen)
        self._seen |= dict.fromkeys(new, now)
        return new

    async def _read(self, session: Coordination, token_id: str) -> None:
        path = TokenNode.path(token_id)
        try:
            data, _ = await session.get(path)
            token = TokenNode.decode(path, data)
        except NoNode:
            self._forget(token_id)
        except UnreadableNode as error:
            self._forget(token_id)
            _log.error("delegation token ignored path=%s error=%s", path, error)
        else:
            if not token.owner.is_user:
                # Another program has written it. It can be described and removed, not used.
                _log.error("no login with delegation token path=%s owner=%s", path, token.owner)
            self._keep(token)

    def _session_changed(self, state: SessionState) -> None:
        # An earlier read may have been interrupted after its watch had fired.
        if state is SessionState.CONNECTED:
            self._changed(TokenChangeNode.PARENT)

    def _changed(self, _path: str) -> None:
        if not self._is_catching_up:
            self._is_catching_up = True
            self._tasks.supervise(self._catch_up, "changes of delegation tokens")

    async def _catch_up(self) -> None:
        """Read the tokens that new notifications name, and remove old notifications."""
        session = self._session
        assert session is not None, "the tokens have not been started"
        try:
            # From here on the new watch starts the next pass.
            self._is_catching_up = False
            names = await session.children(TokenChangeNode.PARENT, self._changed)
            async with self._lock:
                for name in sorted(set(names) - self._seen.keys()):
                    await self._follow(session, name)
                    self._note([name])
                await self._remove_old(session, set(names))
        except CoordinationError as error:
            # When a suspended session is back it is read again; after a lost one `start` reads all.
            _log.warning("failed to read changes of delegation tokens error=%s", error)

    async def _follow(self, session: Coordination, name: str) -> None:
        try:
            data, _ = await session.get(f"{TokenChangeNode.PARENT}/{name}")
        except NoNode:
            return
        await self._read(session, TokenChangeNode.decode(data))

    async def _remove_old(self, session: Coordination, names: set[str]) -> None:
        since = self._clock.monotonic() - NOTIFICATION_SECONDS
        for name, seen_at in list(self._seen.items()):
            if name in names and seen_at < since:
                # Another broker may be faster.
                with contextlib.suppress(NoNode):
                    await session.delete(f"{TokenChangeNode.PARENT}/{name}")
                names.discard(name)
            if name not in names:
                del self._seen[name]
