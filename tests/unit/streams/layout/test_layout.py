"""The tasks of a topology, their stages, and the routes of the records to them."""

import re

import pytest

from ottla.streams import Serdes, Stores, StreamsBuilder, Topology, TopologyError
from ottla.streams.layout.layout import Application, Layout, Routing, components, lay_out
from ottla.streams.processor.api import Processor
from ottla.streams.task.task import TaskSettings


def _application(topology: Topology) -> Application:
    return Application(topology, TaskSettings("app"))


def _lay_out(builder: StreamsBuilder, **topics: int) -> Layout:
    return lay_out([_application(builder.build())], topics)


def test_stateless_sub_topologies_run_at_the_source() -> None:
    """A new key is shuffled to the next stage, with as many partitions as the source topic."""
    builder = StreamsBuilder()
    builder.stream("words").group_by(lambda value: value).count("counts")
    layout = _lay_out(builder, words=3)
    assert [(kind.level, kind.partitions, kind.first_task) for kind in layout.sub_topologies] == [
        (0, 3, 0),
        (1, 3, 3),
    ]
    assert layout.shuffled == {"app-counts-repartition": 1}
    assert layout.created == {}
    assert layout.sub_topology_of(2) is layout.sub_topologies[0]
    assert layout.sub_topology_of(3) is layout.sub_topologies[1]


def test_aggregations_of_new_keys_are_later_stages() -> None:
    """Each aggregation of another key adds a stage."""
    builder = StreamsBuilder()
    counted = builder.stream("words").group_by_key().count()
    counted.group_by(lambda key, value: (value, key)).count()
    assert [kind.level for kind in _lay_out(builder, words=1).sub_topologies] == [1, 2]


def test_topics_that_lead_to_an_earlier_stage_are_on_the_broker() -> None:
    """For a foreign-key join these are the responses, which go to the subscribing partition."""
    builder = StreamsBuilder()
    orders, users = builder.table("orders"), builder.table("users")
    orders.join(users, lambda value: value, lambda one, two: one).to_stream().to("out")
    layout = _lay_out(builder, orders=2, users=3)
    assert [(kind.level, kind.partitions) for kind in layout.sub_topologies] == [(1, 2), (2, 3)]
    (responses,) = layout.created
    assert responses.endswith("-subscription-response-topic") or "RESPONSE" in responses
    assert layout.created[responses] == 2
    (subscriptions,) = layout.shuffled
    assert subscriptions != responses
    assert layout.routes_of(responses)[0].sub_topology_number == 0


def test_topics_of_different_partition_counts_are_joined_by_key() -> None:
    """Kafka rejects them; here their records are sent to the task of their key."""
    builder = StreamsBuilder()
    builder.stream("clicks").join(builder.table("users"), lambda one, two: one).to("out")
    assert _lay_out(builder, clicks=2, users=2).routes["users"][0].routing is Routing.BY_PARTITION
    layout = _lay_out(builder, clicks=2, users=4)
    assert {route.routing for routes in layout.routes.values() for route in routes} == {
        Routing.BY_KEY
    }
    assert layout.sub_topologies[0].partitions == 4


def test_a_checkpoint_keeps_its_tasks_when_topics_grow() -> None:
    """Explicit partition counts, as of repartition, do not depend on the checkpoint."""
    builder = StreamsBuilder()
    builder.stream(re.compile("words-.*")).group_by(lambda value: value).count("counts")
    builder.stream("lines").repartition(number_of_partitions=5).to("out")
    application = _application(builder.build())
    before = lay_out([application], {"words-a": 2, "lines": 2})
    claimed = [kind.partitions for kind in before.sub_topologies]
    grown = {"words-a": 4, "words-b": 3, "lines": 4}
    after = lay_out([application], grown, claimed=claimed)
    assert [kind.partitions for kind in after.sub_topologies] == claimed
    assert [kind.partitions for kind in lay_out([application], grown).sub_topologies] != claimed


@pytest.mark.parametrize(
    ("grown", "routing"),
    [(4, Routing.BY_PARTITION), (3, Routing.BY_KEY)],
    ids=["multiple", "other"],
)
def test_a_restart_after_one_of_several_topics_grew_keeps_the_tasks_of_keys(
    grown: int, routing: Routing
) -> None:
    """With a multiple of the partitions, the task of a key is the same for any partitioner."""
    builder = StreamsBuilder()
    builder.stream(["one", "two"]).group_by_key().count("counts")
    layout = lay_out([_application(builder.build())], {"one": 2, "two": grown}, claimed=[2])
    assert {route.routing for routes in layout.routes.values() for route in routes} == {routing}


class _Plain(Processor[str, str, str, str]):
    """A processor, which could read any global store."""


def test_global_topics_go_to_every_task_that_may_read_them() -> None:
    """These are joins with the global table, and processors."""
    builder = StreamsBuilder()
    locations = builder.global_table("places")
    builder.stream("joined").join(locations, lambda value: value, lambda one, two: one).to("out")
    builder.stream("processed").process(_Plain).to("out-two")
    builder.stream("mapped").map_values(str).to("out-three")
    layout = _lay_out(builder, places=1, joined=1, processed=1, mapped=1)
    assert {
        layout.sub_topologies[route.sub_topology_number].level for route in layout.routes["places"]
    } == {1}
    assert len(layout.routes["places"]) == 2
    assert [kind.level for kind in layout.sub_topologies] == [1, 1, 0]


def test_a_processor_without_store_has_its_own_tasks() -> None:
    """It may have fields and punctuators."""
    builder = StreamsBuilder()
    builder.stream("words").process(_Plain).to("out")
    assert _lay_out(builder, words=1).levels == 1


def test_unconnected_parts_are_separate_queries() -> None:
    """Internal topics and stores connect parts."""
    builder = StreamsBuilder()
    builder.stream("a").to("out-a")
    builder.stream("b").group_by(lambda value: value).count().to_stream().to("out-b")
    builder.add_state_store(Stores.key_value("unused", Serdes.string(), Serdes.string()))
    parts = components(_application(builder.build()))
    assert [len(part.topology.subtopologies()) for part in parts] == [1, 2]


def test_a_missing_topic_is_named_in_the_error() -> None:
    """A pattern may match no topic; a name must exist."""
    builder = StreamsBuilder()
    builder.stream("words").to("out")
    with pytest.raises(TopologyError, match="topic words is read but does not exist"):
        _lay_out(builder, other=1)
