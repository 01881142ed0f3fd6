"""Which process may register under a broker's id, and the sentences that name both."""

import pytest

from ottla.base.errors import ConfigError
from ottla.cluster.image import BrokerImage, Endpoint
from ottla.controller.planning import registrations
from ottla.controller.planning.registrations import IdInUse, Incarnation, Verdict

_HOLDER = Incarnation(7, 1000)


@pytest.mark.parametrize(
    ("session_id", "recorded", "expected"),
    [
        (7, [], Verdict.OWN),
        (8, [(7, 1000)], Verdict.FORMER),
        (8, [(6, 500), (7, 1000), (8, 2000)], Verdict.FORMER),
        (8, [], Verdict.FOREIGN),
        (8, [(8, 1000)], Verdict.FOREIGN),
        # The same session id in another coordination tree, or an earlier copy of the directory.
        (8, [(7, 999)], Verdict.FOREIGN),
    ],
)
def test_only_recorded_registrations_may_be_replaced(
    session_id: int, recorded: list[tuple[int, int]], expected: Verdict
) -> None:
    """A process with the lock of the log directory knows that the recorded ones have ended."""
    assert registrations.verdict(_HOLDER, session_id, recorded) is expected


def test_one_sentence_names_both_brokers() -> None:
    """The operator sees the id, both addresses, and since when the other process has the id."""
    own = BrokerImage(3, "b3", 9092)
    outside = Endpoint("OUTSIDE", "10.0.0.9", 9094)
    holder = BrokerImage(
        3, "b3", 9092, endpoints=(Endpoint("A", "b3", 9092), outside), registered_ms=86_400_000
    )
    error: ConfigError
    for error in (IdInUse(own, holder), registrations.deposed(own, holder)):
        for part in ("node.id 3", "b3:9092,10.0.0.9:9094", "1970-01-02T00:00:00Z", "at b3:9092 "):
            assert part in str(error)
