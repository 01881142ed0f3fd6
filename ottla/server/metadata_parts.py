"""A large metadata update that arrives in several requests."""

from collections.abc import Iterable, Sequence

from ottla.controller.planning.notices import Fence
from ottla.wire.messages.update_metadata import UpdateMetadataTopicState


class MetadataParts:
    """The parts of a large update that have arrived; they take effect together with the last one.

    Otherwise this broker would take a topic of a later part for deleted.
    """

    def __init__(self) -> None:
        self._fence: Fence | None = None
        self._topics: list[UpdateMetadataTopicState] = []

    def add(self, fence: Fence, topics: Iterable[UpdateMetadataTopicState]) -> None:
        """Keep a part; parts of another controller or registration are dropped."""
        if fence != self._fence:
            self._fence, self._topics = fence, []
        self._topics += topics

    def take(
        self, fence: Fence, last: Sequence[UpdateMetadataTopicState]
    ) -> Sequence[UpdateMetadataTopicState]:
        """Return the parts that were kept, and the last one."""
        parts = self._topics if fence == self._fence else []
        self._fence, self._topics = None, []
        return [*parts, *last] if parts else last
