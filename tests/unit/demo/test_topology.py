"""The demo's topology in the test driver, with the flights of a month, compared with pandas."""

import itertools

import pytest

from demo import events, results, topology
from ottla.streams import TopologyTestDriver
from ottla.streams.task.task import TaskSettings, TopicRecord

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def january() -> events.Files:
    """Return the real files of a month."""
    return events.load(1)


def _run(files: events.Files) -> results.Frames:
    """Run the topology over all records."""
    settings = TaskSettings("flights", writes_changelogs=False)
    with TopologyTestDriver(topology.build(), settings=settings) as driver:
        records = (events.tables(files), events.happenings(files), events.closing(files, 1))
        for event in itertools.chain(*records):
            key = None if event.key is None else event.key.encode()
            driver.pipe(event.topic, TopicRecord(key, event.value, event.time_ms))
        return {
            topic: results.found(
                topic, ((record.key, record.value) for record in driver.produced(topic))
            )
            for topic in results.KEYS
        }


def test_totals_of_a_month_agree_with_pandas(january: events.Files) -> None:
    """There are six results of 27,004 flights: joins, hopping, tumbling and session windows, top
    five, alerts.
    """
    right = results.expected(january)
    assert {topic: len(rows) for topic, rows in right.items()} == {
        topology.CARRIERS: 6116,
        topology.SKIES: 12,
        topology.MAKERS: 32,
        topology.RUNS: 21872,
        topology.ALERTS: 606,
        topology.LONGEST: 88,
    }
    assert results.disagreements(_run(january), right) == []


def test_expected_totals_count_every_flight(january: events.Files) -> None:
    """Each flight is in two hopping windows, in one run if its plane is known, and departed or
    cancelled.
    """
    right = results.expected(january)
    flights = january.flights
    carriers = right[topology.CARRIERS]
    assert carriers["flights"].sum() == 2 * len(flights) == 54_008
    assert carriers["delay"].sum() == 2 * flights["dep_delay"].sum()
    assert right[topology.RUNS]["flights"].sum() == flights["tailnum"].notna().sum()
    known = flights["tailnum"].isin(january.planes["tailnum"])
    assert right[topology.MAKERS]["flights"].sum() == known.sum()
