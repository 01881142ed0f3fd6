"""Requests to the leaders of partitions that this broker does not lead."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from ottla.base.errors import ProtocolError
from ottla.cluster.image import ClusterImage
from ottla.net.requests import RequestChannel
from ottla.wire.fields import Message

_log = logging.getLogger(__name__)

# A scrape does not wait longer for another broker, in seconds.
PATIENCE_SECONDS = 1.0

PartitionKey = tuple[str, int]
R = TypeVar("R", bound=Message)


def by_leader(
    image: ClusterImage, partitions: Iterable[PartitionKey]
) -> Mapping[int, list[PartitionKey]]:
    """Return the partitions by leader; those without one are under NO_LEADER, or left out."""
    keys_by_leader: dict[int, list[PartitionKey]] = {}
    for topic, partition in partitions:
        state = image.partition(topic, partition)
        if state is not None:
            keys_by_leader.setdefault(state.leader, []).append((topic, partition))
    return keys_by_leader


class Leaders:
    """Sends requests to brokers; `connect` returns the channel to one, None if it is not alive."""

    def __init__(self, connect: Callable[[int], RequestChannel | None]) -> None:
        self._connect = connect

    async def ask(
        self, questions: Iterable[tuple[int, Message]], version: int, response: type[R]
    ) -> list[R | None]:
        """Send each message to its broker, all at once; None for a broker that does not respond."""
        return await asyncio.gather(
            *(self._ask(broker, message, version, response) for broker, message in questions)
        )

    async def _ask(self, broker: int, message: Message, version: int, kind: type[R]) -> R | None:
        channel = self._connect(broker)
        if channel is None:
            return None
        try:
            response = await channel.request(message, version, seconds=PATIENCE_SECONDS)
        except (OSError, ProtocolError) as error:
            _log.debug("no response for metrics broker=%d error=%s", broker, error)
            return None
        assert isinstance(response, kind)
        return response
