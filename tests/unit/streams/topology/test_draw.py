"""A topology can be drawn, and can explain where its nodes run on Spark."""

import xml.etree.ElementTree as ET

import pytest

from ottla.streams import StreamsBuilder, Topology, explain
from ottla.streams.expressions.columns import col
from ottla.streams.topology.topology import visible_stores
from tests.streams.recorded.topologies import build
from tests.streams.transcripts import NAMES

_SVG = "{http://www.w3.org/2000/svg}"


def _titles(topology: Topology) -> list[str]:
    root = ET.fromstring(topology.to_svg())
    return [element.text or "" for element in root.iter(f"{_SVG}title")]


@pytest.mark.parametrize("name", NAMES)
def test_every_topology_is_drawn(name: str) -> None:
    """Each node, store and topic appears once; boxes do not overlap and are inside the picture."""
    topology = build(name)
    root = ET.fromstring(topology.to_svg())
    boxes = []
    for group in root.iter(f"{_SVG}g"):
        rectangle = group.find(f"{_SVG}rect")
        assert rectangle is not None
        boxes.append([float(rectangle.attrib[each]) for each in ("x", "y", "width", "height")])
    texts = [element.text for element in root.iter(f"{_SVG}text")]
    stores = visible_stores(topology)
    for each in (*topology.nodes, *stores):
        assert texts.count(each) == 1
    assert not (set(topology.stores) - set(stores)) & set(texts)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for number, (x, y, w, h) in enumerate(boxes):
        assert 0 <= x <= x + w <= width
        assert 0 <= y <= y + h <= height
        for x2, y2, w2, h2 in boxes[:number]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y


def test_names_with_xml_characters_are_escaped() -> None:
    """Names of topologies may contain such characters."""
    topology = Topology().add_source("a<b>&", "in")
    assert "source a<b>&" in _titles(topology)


def test_an_explanation_marks_nodes_shuffles_and_expressions() -> None:
    """It shows what runs at the source, what runs in a stage, and the shuffles in between."""
    builder = StreamsBuilder()
    stream = builder.stream("in").filter(col("value.a") > 1)
    stream.group_by(lambda value: value).count("counts").to_stream().to("out")
    lines = explain(builder.build(), partitions={"in": 3}).splitlines()
    assert lines[0] == "Sub-topology 0: where the source is read, 3 tasks"
    assert "  Read: topic in, to the task of the record's partition" in lines
    expression = "an expression: (col('value.a') > 1)"
    held = "Python (it is in a stateful query)"
    assert f"  KSTREAM-FILTER-0000000001: {held}, {expression}" in lines
    stage = lines.index("Sub-topology 1: stage 1: transformWithState, 3 tasks")
    assert lines[stage + 1 : stage + 3] == [
        "  Store counts: Python, its pages in Spark's state store (JVM)",
        "  Shuffle (JVM): app-counts-repartition, by key: no topic on the broker",
    ]


def test_an_explanation_names_topics_on_the_broker() -> None:
    """The responses of a foreign-key join go through the broker."""
    assert "stays on the broker: it closes a cycle" in explain(build("foreign_key_join"))
