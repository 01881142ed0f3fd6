"""A message that is encoded in pieces has the same bytes as one that is encoded at once."""

import pytest

from ottla.wire import schema
from ottla.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from ottla.wire.pieces import Pieces


@pytest.mark.parametrize("version", range(14))
@pytest.mark.parametrize("count", [0, 1, 5, 127, 300])
def test_pieces_are_the_whole(version: int, count: int) -> None:
    """In every version of a message with fields before and after the array."""
    brokers = [MetadataResponseBroker(node_id=1, host="broker", port=9092)]
    head = MetadataResponse(brokers=brokers, controller_id=1, cluster_id="c")
    topics = [MetadataResponseTopic(name=f"topic-{number}") for number in range(count)]
    pieces = Pieces(MetadataResponse, version, "topics")
    for start in range(0, count, 7):
        pieces.add(topics[start : start + 7])
    parts = b"".join(pieces.parts(head, b"header"))
    whole = MetadataResponse(brokers=brokers, controller_id=1, cluster_id="c", topics=topics)
    assert parts == b"header" + schema.encode(whole, version)
    assert pieces.count == count
