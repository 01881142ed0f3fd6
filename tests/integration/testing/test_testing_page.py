"""The examples of docs/testing-with-ottla.md run as shown."""

import re
from typing import Any

from ottla.testing import Cluster
from ottla.testing.sim.cluster.scenario import KINDS
from tests.law import source

PAGE = "docs/testing-with-ottla.md"


def _page() -> str:
    return (source.ROOT / PAGE).read_text(encoding="utf-8")


def _run(number: int) -> dict[str, Any]:
    """Execute one example of the page, and return its names."""
    names: dict[str, Any] = {}
    example = re.findall(r"```python\n(.*?)```", _page(), re.DOTALL)[number]
    exec(compile(example, PAGE, "exec"), names)
    return names


def test_first_test_of_the_page_passes(ottla_cluster: Cluster) -> None:
    """It sends a record through the fixture, and receives it."""
    _run(0)["test_an_order_is_delivered"](ottla_cluster)


def test_fixtures_of_the_page_have_values_that_a_cluster_accepts() -> None:
    """Their names are fixtures of the plugin, and their options are known."""
    names = _run(1)
    # The functions below the decorator of pytest.
    count, options = (names[name].__wrapped__() for name in ("ottla_brokers", "ottla_options"))
    with Cluster(count, options=options) as cluster:
        assert cluster.live_brokers == (1, 2, 3)


def test_a_cluster_of_the_page_survives_its_faults() -> None:
    """A leader is killed and another one acknowledges; then it is paused and cut off."""
    assert _run(2)["leader"] in (1, 2, 3)


def test_simulation_of_the_page_finds_no_problem_and_repeats_a_seed() -> None:
    """Five seeds of a scenario with full disks; its faults happen and records are acknowledged."""
    result = _run(3)["result"]
    assert result.applied and result.acknowledged > 0


def test_the_page_lists_every_kind_of_simulated_fault() -> None:
    """A tester finds the names that a scenario may have."""
    listed = _page().partition("* The kinds are ")[2].partition(".\n")[0]
    assert sorted(re.findall(r"`(\w+)`", listed)) == sorted(KINDS)
