"""The secret of a cluster, with which its brokers prove their identity to each other.

It is stored in the coordination tree, because a writer of the tree controls the cluster anyway.
Restrict the tree to the brokers if the network is not trusted.

A new secret replaces it when the option `inter.broker.secret.generation` is raised: every broker
sees that, and the first one writes the node. The former secret is valid for a while, during which
the brokers learn of the new one. That time begins for each broker when it has read the new secret,
so that clocks that differ do not matter; a broker that starts later counts from the time of the
replacement.
"""

import logging
from collections.abc import Callable

from ottla.base.clock import Clock
from ottla.base.rng import Rng
from ottla.base.tasks import Tasks
from ottla.cluster.secret_znodes import BrokerSecretNode, SecretContent
from ottla.cluster.zk.port import (
    BadVersion,
    Coordination,
    CoordinationError,
    NodeExists,
    NoNode,
)
from ottla.security.broker_proof import KeysByGeneration

SECRET_BYTES = 32

_log = logging.getLogger(__name__)


class BrokerSecret:
    """The secret as of now; lives on the broker's loop. `start` with each new session.

    `on_retired` is called with the generation of a key that is not valid any more.
    """

    def __init__(self, clock: Clock, rng: Rng, tasks: Tasks, overlap_ms: int) -> None:
        self.on_retired: Callable[[int], None] = lambda generation: None
        self._clock = clock
        self._rng = rng
        self._tasks = tasks
        self._overlap_ms = overlap_ms
        self._session: Coordination | None = None
        self._content: SecretContent | None = None
        # By the monotonic clock in seconds.
        self._former_until = float("-inf")
        # The generation that the options ask for.
        self._wanted = 1

    def valid_keys(self) -> KeysByGeneration:
        """Return the keys that are valid now, by their generations."""
        content = self._content
        assert content is not None, "the secret has not been read"
        keys = {content.generation: content.key}
        if content.former is not None and self._clock.monotonic() < self._former_until:
            generation, key = content.former
            keys[generation] = key
        return keys

    async def start(self, session: Coordination) -> None:
        """Read the secret and follow its changes; the first broker of a cluster generates it."""
        self._session = session
        while True:
            try:
                await self._read(session)
            except NoNode:
                await session.ensure(BrokerSecretNode.PATH.rpartition("/")[0])
                content = SecretContent(self._rng.random_bytes(SECRET_BYTES))
                try:
                    await session.create(BrokerSecretNode.PATH, BrokerSecretNode.encode(content))
                except NodeExists:
                    # Another broker created it first: its secret is the cluster's.
                    continue
            else:
                return

    async def _read(self, session: Coordination) -> int:
        """Read the node; return its version."""
        data, stat = await session.get(BrokerSecretNode.PATH, self._changed)
        self._take(BrokerSecretNode.decode(data))
        return stat.version

    def _take(self, content: SecretContent) -> None:
        before, self._content = self._content, content
        if content == before or content.former is None:
            return
        overlap_ms = self._overlap_ms
        if before is None:
            # It started after the replacement, maybe with another clock.
            passed_ms = self._clock.time_ms() - content.replaced_ms
            overlap_ms = min(max(overlap_ms - passed_ms, 0), overlap_ms)
        else:
            _log.info("broker secret replaced generation=%d", content.generation)
        self._former_until = self._clock.monotonic() + overlap_ms / 1000
        retire = self._retire(content, self._former_until)
        self._tasks.spawn(retire, "former secret of brokers")

    async def _retire(self, content: SecretContent, until: float) -> None:
        while (seconds := until - self._clock.monotonic()) > 0:
            await self._clock.sleep(seconds)
        if self._content == content and content.former is not None:
            _log.info("broker secret retired generation=%d", content.former[0])
            self.on_retired(content.former[0])
            await self._replace_if_due()

    def _changed(self, _path: str) -> None:
        self._tasks.supervise(self._read_again, "secret of brokers")

    async def _read_again(self) -> None:
        assert self._session is not None, "the secret has not been read"
        try:
            await self._read(self._session)
        except CoordinationError as error:
            # The next session reads it.
            _log.warning("failed to read the secret of brokers error=%s", error)

    def want(self, generation: int) -> None:
        """Replace the secret if the options ask for a later generation than the present one."""
        self._wanted = generation
        self._tasks.supervise(self._replace_if_due, "secret of brokers")

    async def _replace_if_due(self) -> None:
        """Write a new secret; after another one that is still learned, when its time is over."""
        while (content := self._content) is not None and content.generation < self._wanted:
            if content.former is not None and self._clock.monotonic() < self._former_until:
                return
            assert self._session is not None, "the secret has not been read"
            new = SecretContent(
                self._rng.random_bytes(SECRET_BYTES),
                self._wanted,
                (content.generation, content.key),
                self._clock.time_ms(),
            )
            try:
                version = await self._read(self._session)
                if self._content == content:
                    encoded = BrokerSecretNode.encode(new)
                    await self._session.set(BrokerSecretNode.PATH, encoded, version)
                    self._take(new)
            except BadVersion:
                # Another broker was faster.
                continue
            except CoordinationError as error:
                # The broker that can reach the tree writes it.
                _log.warning("failed to replace the secret of brokers error=%s", error)
                return
