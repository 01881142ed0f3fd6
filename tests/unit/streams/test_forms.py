"""The forms of Kafka Streams' operators: what stands in Java in a place may stand there in Python."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.streams import (
    Branched,
    BufferConfig,
    Consumed,
    Grouped,
    Joined,
    JoinWindows,
    KStream,
    KTable,
    Materialized,
    Named,
    Printed,
    Processor,
    Produced,
    Record,
    Serdes,
    Stores,
    StreamJoined,
    StreamsBuilder,
    StreamsError,
    Suppressed,
    TableJoined,
    Topology,
    TopologyError,
    TopologyTestDriver,
)

NAME, KEPT = Named.as_("name"), Materialized.as_("kept")
WINDOWS = JoinWindows.of_time_difference_with_no_grace("1 min")
Build = Callable[[StreamsBuilder, KStream[Any, Any], KTable[Any, Any]], Any]


class Forward(Processor[Any, Any, Any, Any]):
    """Forwards."""

    def process(self, record: Record[Any, Any]) -> None:
        """Forward."""
        self.context.forward(record)


def built(build: Build) -> Topology:
    """Return the topology that a function adds to a stream and a table."""
    builder = StreamsBuilder()
    stream, table = builder.stream("in"), builder.table("table")
    build(builder, stream, table)
    return builder.build()


FORMS: list[tuple[Build, Build]] = [
    (lambda b, s, t: s.filter(bool, NAME), lambda b, s, t: s.filter(bool, named="name")),
    (lambda b, s, t: s.map_values(str, NAME), lambda b, s, t: s.map_values(str, named="name")),
    (lambda b, s, t: s.peek(print, NAME), lambda b, s, t: s.peek(print, named="name")),
    (lambda b, s, t: s.merge(s, NAME), lambda b, s, t: s.merge(s, named="name")),
    (lambda b, s, t: s.process(Forward, NAME), lambda b, s, t: s.process(Forward, named="name")),
    (
        lambda b, s, t: s.group_by_key().count(NAME, KEPT),
        lambda b, s, t: s.group_by_key().count("kept", named="name"),
    ),
    (
        lambda b, s, t: s.group_by(str, Grouped.as_("g")).reduce(max, NAME, KEPT),
        lambda b, s, t: s.group_by(str, name="g").reduce(max, materialized="kept", named=NAME),
    ),
    (lambda b, s, t: s.to_table(NAME, KEPT), lambda b, s, t: s.to_table("kept", named="name")),
    (lambda b, s, t: t.filter(bool, NAME), lambda b, s, t: t.filter(bool, named="name")),
    (
        lambda b, s, t: t.map_values(str, NAME, KEPT),
        lambda b, s, t: t.map_values(str, "kept", named="name"),
    ),
    (lambda b, s, t: t.to_stream(NAME), lambda b, s, t: t.to_stream(named="name")),
    (
        lambda b, s, t: t.join(t, max, NAME, KEPT),
        lambda b, s, t: t.join(t, joiner=max, materialized="kept", named="name"),
    ),
    (
        lambda b, s, t: t.left_join(t, str, max, TableJoined.as_("name"), KEPT),
        lambda b, s, t: t.left_join(t, extractor=str, joiner=max, named=NAME, materialized="kept"),
    ),
    (
        lambda b, s, t: s.join(t, max, Joined.with_(None, None, None, "name")),
        lambda b, s, t: s.join(t, max, joined=Joined.as_("name")),
    ),
    (
        lambda b, s, t: s.join(s, max, WINDOWS, StreamJoined.as_("kept").with_name("name")),
        lambda b, s, t: s.join(
            s, max, WINDOWS, StreamJoined.as_("x").with_name("name").with_store_name("kept")
        ),
    ),
    (
        lambda b, s, t: b.table("other", KEPT),
        lambda b, s, t: b.table("other", Consumed(), KEPT),
    ),
    (
        lambda b, s, t: b.global_table("other", Consumed.as_("name"), KEPT),
        lambda b, s, t: b.global_table("other", name="name", materialized="kept"),
    ),
    (
        lambda b, s, t: b.add_global_store(Stores.key_value("g"), "other", Consumed(), Forward),
        lambda b, s, t: b.add_global_store(Stores.key_value("g"), "other", Forward),
    ),
    (lambda b, s, t: s.to("out", Produced.as_("name")), lambda b, s, t: s.to("out", named="name")),
]


@pytest.mark.parametrize(("theirs", "ours"), FORMS)
def test_options_stand_where_kafka_has_them(theirs: Build, ours: Build) -> None:
    """Named and Materialized are known by their types, in whatever order."""
    assert str(built(theirs).describe()) == str(built(ours).describe())


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda b, s, t: s.join(s, max), r"a join with a stream is written \(other, joiner, win"),
        (lambda b, s, t: s.join(s, max, Joined()), "a join with a stream is written"),
        (lambda b, s, t: s.join(t, max, WINDOWS), r"with a table is written \(other, joiner\)"),
        (lambda b, s, t: s.join(b.global_table("g"), max), r"\(other, selector, joiner\)"),
        (lambda b, s, t: s.outer_join(t, max), "an outer join of a stream needs another stream"),
        (lambda b, s, t: t.join(t), r"tables are joined with \(table, joiner\) by key"),
        (lambda b, s, t: t.join(t, max, WINDOWS), "tables are joined with"),
    ],
)
def test_a_join_of_another_form_is_told_its_form(build: Build, sentence: str) -> None:
    """The error says what to write."""
    with pytest.raises(TopologyError, match=sentence):
        built(build)


def test_changes_of_a_table_of_versions_cannot_wait() -> None:
    """As in Kafka Streams, also where the versions are those of a table further up."""
    kept = Materialized.as_(Stores.versioned("kept", 10))
    table = StreamsBuilder().table("in", materialized=kept).filter(lambda v: v)
    with pytest.raises(TopologyError, match="tables without versions"):
        table.suppress(Suppressed.until_time_limit(5, BufferConfig.unbounded()))


def test_where_a_source_starts_is_one_of_two_words() -> None:
    """A third would be taken for the beginning."""
    with pytest.raises(TopologyError, match="earliest or latest, not at 'erliest'"):
        StreamsBuilder().stream("in", offset_reset="erliest")
    StreamsBuilder().stream("in", Consumed().with_offset_reset_policy("latest"))


def test_an_operator_has_one_name() -> None:
    """Two Named are a mistake."""
    with pytest.raises(TypeError, match="one name"):
        built(lambda b, s, t: s.group_by_key().count(NAME, NAME))  # type: ignore[arg-type]


def test_a_stream_is_printed(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    """To standard output as Kafka prints it, or to a file."""
    path = tmp_path / "printed"
    builder = StreamsBuilder()
    stream = builder.stream("in")
    stream.print(Printed.to_sys_out().with_label("seen"))
    stream.print(Printed.to_file(str(path)).with_key_value_mapper(lambda k, v: f"{k}={v}"))
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("a", 1)
    assert capsys.readouterr().out == "[seen]: a, 1\n"
    assert path.read_text() == "[KSTREAM-SOURCE-0000000000]: a=1\n"


def test_stores_of_a_driver_are_read_as_those_of_an_application() -> None:
    """Plain values under Kafka's names; a name that is not there is told with those that are."""
    builder = StreamsBuilder()
    builder.stream("in", value=Serdes.string()).group_by_key().count("counts")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in", value=Serdes.string()).pipe_input("a", "x")
        assert driver.get_key_value_store("counts").get("a") == 1
        assert driver.get_timestamped_key_value_store("counts").get("a") == (1, 0)
        assert list(driver.store("counts", with_timestamps=True).all()) == [("a", (1, 0))]
        with pytest.raises(StreamsError, match="no store count; the topology has: counts"):
            driver.store("count")


def test_branches_are_named_and_continued() -> None:
    """As `split().branch(…, Branched.withFunction(…))`."""
    builder = StreamsBuilder()
    chain = Branched.with_function(lambda s: s.map_values(str), "texts")
    branches = builder.stream("in").split(NAME).branch(bool, chain).no_default_branch()
    assert list(branches) == ["nametexts"]
