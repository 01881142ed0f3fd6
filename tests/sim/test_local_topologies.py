"""Every topology of the property tests on the local engine, with random rebalances and faults.

All records are there before the application starts, so that their timestamps decide the order
(KIP-695). Recorded topologies have one partition, and the sequence of the driver's results; the
others have three partitions, and the driver's final state.
"""

from dataclasses import dataclass

import pytest

from ottla.streams import Topology
from tests.integration.streams.local.test_equality import _LATER, _NAMES, _OTHERS
from tests.sim.streams.simulation import play
from tests.sim.streams.topologies import Case
from tests.streams.test_any_micro_batches import _OWN, _RECORDED, _sources, _topology

pytestmark = pytest.mark.slow

_QUICK = ("foreign_inner", "suppress_window", "stream_outer_join", "table_join", "session_on_close")
_VALUES = (b"a", b"b", b"x", b"ax", b"ay", b"bx", b"xy", None)
_ALL = [name for name in (*_OWN, *_RECORDED) if name not in _OTHERS]
assert len(_ALL) == len(_NAMES)


def _no_steps(builder: object) -> None:
    raise AssertionError("the topology has a name")


@dataclass(frozen=True)
class NamedCase(Case):
    """A topology of the property tests."""

    name: str = ""

    def topology(self) -> Topology:
        """Return the topology."""
        return _topology(self.name)


def _case(name: str) -> NamedCase:
    return NamedCase(
        _no_steps,
        tuple(_sources(_topology(name))),
        is_live=False,
        is_final=name in _LATER,
        partitions=3 if name in _OWN else 1,
        values=_VALUES,
        name=name,
    )


def _complaint(name: str, seed: int) -> str:
    complaint = play(_case(name), seed, is_exactly_once=True).complaint
    return complaint and f"{name}, seed {seed}: {complaint}"


@pytest.mark.parametrize("name", _QUICK)
def test_rebalances_and_faults_do_not_change_the_results(name: str) -> None:
    """The results of each key are the test driver's."""
    assert _complaint(name, 1) == ""


@pytest.mark.nightly(
    "tests/sim/test_local_topologies.py::test_rebalances_and_faults_do_not_change_the_results"
)
@pytest.mark.parametrize("name", _ALL)
def test_many_seeds_do_not_change_the_results(name: str) -> None:
    """Ten seeds of each topology."""
    assert [_complaint(name, seed) for seed in range(1, 11)] == [""] * 10
