"""The parser of Topology#describe."""

import pytest

from ottla.base.errors import ConfigError
from ottla.console.streams.describe_text import NODES_MAX, TEXT_MAX, NodeKind, parse_topology
from ottla.streams import StreamsBuilder

WORDS = """Topologies:
   Sub-topology: 0
    Source: read (topics: [words, more])
      --> split
    Processor: split (stores: [])
      --> by-key-sink
      <-- read
    Sink: by-key-sink (topic: by-key-repartition)
      <-- split

  Sub-topology: 1
    Source: by-key-source (topics: [by-key-repartition])
      --> count
    Processor: count (stores: [counts])
      --> write, none
      <-- by-key-source
    Sink: write (extractor class: ChooseTopic)
      <-- count

  Sub-topology: 2 for global store (will not generate tasks)
    Source: rates-source (topics: rates-.*)
      --> rates
    Processor: rates (stores: [rates-store])
      --> none
      <-- rates-source
"""


def test_nodes_topics_stores_and_arrows_are_read() -> None:
    """Every form of a line of Kafka's text is understood."""
    topology = parse_topology(WORDS)
    by_name = {node.name: node for node in topology.nodes}
    assert list(by_name) == [
        *("read", "split", "by-key-sink", "by-key-source", "count", "write"),
        *("rates-source", "rates"),
    ]
    assert by_name["read"].topics == ("words", "more")
    assert by_name["split"].successors == ("by-key-sink",)
    assert by_name["count"].successors == ("write",)
    assert by_name["write"].kind is NodeKind.SINK
    assert (by_name["write"].dynamic, by_name["rates-source"].dynamic) == (
        "ChooseTopic",
        "rates-.*",
    )
    assert [node.subtopology for node in topology.nodes] == [0, 0, 0, 1, 1, 1, 2, 2]
    assert topology.stores == ("counts", "rates-store")
    assert topology.inputs == ("by-key-repartition", "more", "words")
    assert topology.outputs == ("by-key-repartition",)


def test_the_description_of_our_own_topologies_is_read() -> None:
    """Joins, windows and tables of `ottla.streams` have the same text as Kafka's."""
    builder = StreamsBuilder()
    rates = builder.table("rates")
    orders = builder.stream("orders").join(rates, lambda order, rate: order)
    orders.group_by(lambda key, value: value).count().to_stream().to("counts")
    topology = builder.build()
    parsed = parse_topology(str(topology.describe()))
    assert {node.name for node in parsed.nodes} == set(topology.nodes)
    assert len(parsed.stores) == len(topology.stores)
    assert {"orders", "rates"} <= set(parsed.inputs)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "no nodes"),
        ("Topologies:\n  Sub-topology: 0\n", "no nodes"),
        ("hello", "line 1 of the description is 'hello'"),
        ("Source: a (topics: [b])", "before the first sub-topology"),
        ("Sub-topology: 0\nSource: a (topics: [b])\n--> c", "leads to 'c'"),
        ("Sub-topology: 0\n" + "Source: a (topics: [b])\n" * 2, "same name"),
        ("x" * (TEXT_MAX + 1), "characters at most"),
    ],
)
def test_other_texts_are_refused_with_the_reason(text: str, error: str) -> None:
    """The error names the line or the node."""
    with pytest.raises(ConfigError, match=error):
        parse_topology(text)


def test_a_topology_that_cannot_be_drawn_is_refused() -> None:
    """The page stays small, whatever a user uploads."""
    rows = [f"Processor: p{n} (stores: [])" for n in range(NODES_MAX + 1)]
    with pytest.raises(ConfigError, match="2000 can be drawn"):
        parse_topology("Sub-topology: 0\n" + "\n".join(rows))
