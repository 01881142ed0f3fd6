"""The address of a broker that a client gets."""

import pytest

from ottla.cluster.image import BrokerImage, Endpoint
from ottla.server.handlers import metadata
from tests.handlers.logs import NODE, OTHER, LogsBroker

ME = BrokerImage(NODE, "registered", 1)
THEY = BrokerImage(
    OTHER,
    "outer",
    2,
    endpoints=(Endpoint("PLAINTEXT", "outer", 2), Endpoint("INNER", "inner", 3)),
)


@pytest.mark.parametrize(
    ("listener", "broker_image", "expected"),
    [
        ("PLAINTEXT", ME, ("public", 9)),
        ("INNER", ME, ("127.0.0.1", 7)),
        ("PLAINTEXT", THEY, ("outer", 2)),
        ("INNER", THEY, ("inner", 3)),
        ("OTHER", THEY, None),
    ],
)
async def test_addresses(
    broker: LogsBroker, listener: str, broker_image: BrokerImage, expected: tuple[str, int] | None
) -> None:
    """This broker has its advertised address, else the client's; others use the same listener."""
    broker.advertised = {"PLAINTEXT": ("public", 9)}
    context = broker.context(metadata, 9, listener)
    assert context.address_of(broker_image) == expected
