"""Groupings of tables compare the groups of an entry by their bytes."""

from typing import Any

import pytest

from ottla.streams import Serdes, StreamsBuilder, TopologyTestDriver
from ottla.streams.serdes import Serde
from ottla.testing.schema_registry import FakeSchemaRegistry


def _groups(*values: dict[str, Any], key: Serde[Any] | None = None) -> dict[Any, Any]:
    """Return the values of each group after these values of one entry."""
    builder = StreamsBuilder()
    groups = builder.table("in").group_by(lambda k, v: (v["group"], v["name"]), key=key)
    groups.aggregate(
        list, lambda v, names: [*names, v], lambda v, names: [name for name in names if name != v]
    ).to_stream().to("out", key=key)
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in")
        for value in values:
            topic.pipe_input("k", value)
        read = Serdes.bytes() if key is None else key
        return driver.create_output_topic("out", key=read).read_key_values_to_map()


@pytest.mark.parametrize("second", [1.0, True])
def test_an_equal_group_with_other_bytes_replaces_the_old_group(second: Any) -> None:
    """The row of the old group is removed, although 1 == 1.0 == True in Python."""
    groups = _groups({"group": 1, "name": "a"}, {"group": second, "name": "b"})
    assert groups == {b"1": [], str(second).lower().encode(): ["b"]}


def test_an_entry_that_stays_in_its_group_is_updated_there() -> None:
    """Its old value is removed and its new value added in one change."""
    assert _groups({"group": 1, "name": "a"}, {"group": 1, "name": "b"}) == {b"1": ["b"]}


def test_groups_are_compared_with_the_schema_of_the_repartition_topic() -> None:
    """A schema registry's serde cannot write without the topic of the keys."""
    registry = FakeSchemaRegistry()
    key = Serdes.avro("string", registry=registry)
    assert _groups({"group": "g", "name": "a"}, {"group": "g", "name": "b"}, key=key) == {
        "g": ["b"]
    }
    names = [subject for subject in registry.subjects if "repartition" in subject]
    assert names == ["test-KTABLE-AGGREGATE-STATE-STORE-0000000004-repartition-key"]
