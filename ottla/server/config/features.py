"""The finalized features: read from /feature, followed, and changed there (KIP-584).

The version of the znode is the epoch of the features. Follows FinalizedFeatureChangeListener and
KafkaController of Apache Kafka 3.9.
"""

import logging
from collections.abc import Mapping, Sequence

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.tasks import Tasks
from ottla.cluster import features
from ottla.cluster.features import Range, Update
from ottla.cluster.zk.port import BadVersion, Coordination, CoordinationError, NodeExists
from ottla.cluster.znodes import FeatureNode

_log = logging.getLogger(__name__)

_UNKNOWN_EPOCH = -1


class Features:
    """The supported and the finalized features. Lives on the broker's loop.

    `levels` is replaced, never changed; a feature that is not in it is off.
    """

    def __init__(self, ranges: Mapping[str, Range], tasks: Tasks) -> None:
        self.ranges = ranges
        self.levels: Mapping[str, int] = {}
        self.epoch = _UNKNOWN_EPOCH
        self._tasks = tasks
        self._session: Coordination | None = None

    def level(self, feature: str) -> int:
        """Return the finalized level of a feature; 0 if it is off."""
        return self.levels.get(feature, 0)

    async def start(self, session: Coordination) -> None:
        """Read the levels and follow their changes; a new cluster gets the highest levels."""
        self._session = session
        if await session.exists(FeatureNode.PATH) is None:
            try:
                encoded = FeatureNode.encode(features.defaults(self.ranges))
                await session.create(FeatureNode.PATH, encoded)
            except NodeExists:
                # Another broker has created the znode.
                pass
        await self._read(session)

    def _changed(self, _: str) -> None:
        self._tasks.supervise(self._read_again, "read features")

    async def _read_again(self) -> None:
        assert self._session is not None
        try:
            await self._read(self._session)
        except CoordinationError as error:
            # The next session reads the levels.
            _log.warning("failed to read features error=%s", error)

    async def _read(self, session: Coordination) -> None:
        data, stat = await session.get(FeatureNode.PATH, self._changed)
        self._take(data, stat.version)

    def _take(self, data: bytes, version: int) -> None:
        if version <= self.epoch:
            return
        levels, status = FeatureNode.decode(data)
        self.levels = levels if status == FeatureNode.ENABLED else {}
        self.epoch = version
        listed = ",".join(f"{name}={level}" for name, level in sorted(self.levels.items()))
        _log.info("features finalized epoch=%d levels=%s", version, listed)

    async def update(
        self, updates: Sequence[Update], broker_id: int, *, validate_only: bool
    ) -> None:
        """Finalize other levels, all or none; raises INVALID_UPDATE_VERSION if one is refused.

        Raises NOT_CONTROLLER, which clients retry, while the coordination tree is unreachable.
        """
        session = self._session
        assert session is not None
        while True:
            try:
                data, stat = await session.get(FeatureNode.PATH)
                current, _ = FeatureNode.decode(data)
                levels = features.updated(self.ranges, current, updates, broker_id)
                if validate_only:
                    return
                encoded = FeatureNode.encode(levels)
                written = await session.set(FeatureNode.PATH, encoded, stat.version)
            except BadVersion:
                continue
            except CoordinationError as error:
                raise ApiError(ErrorCode.NOT_CONTROLLER) from error
            self._take(encoded, written.version)
            return
