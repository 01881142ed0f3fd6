"""The forms of Kafka Streams' operators: Java's order of arguments works in Python."""

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
    """A processor that forwards its records."""

    def process(self, record: Record[Any, Any]) -> None:
        """Forward the record."""
        self.context.forward(record)


def built(build: Build) -> Topology:
    """Return the topology that `build` creates with a stream and a table."""
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
def test_options_are_accepted_in_kafkas_positions(theirs: Build, ours: Build) -> None:
    """Named and Materialized are recognized by type, in any order."""
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
def test_a_join_with_wrong_arguments_is_rejected_with_the_right_form(
    build: Build, sentence: str
) -> None:
    """The error contains the expected arguments."""
    with pytest.raises(TopologyError, match=sentence):
        built(build)


def test_a_versioned_table_cannot_be_suppressed() -> None:
    """This is as in Kafka Streams, also if the versions belong to an upstream table."""
    materialized = Materialized.as_(Stores.versioned("kept", 10))
    table = StreamsBuilder().table("in", materialized=materialized).filter(lambda v: v)
    with pytest.raises(TopologyError, match="versioned table cannot be suppressed"):
        table.suppress(Suppressed.until_time_limit(5, BufferConfig.unbounded()))


def test_an_unknown_offset_reset_is_rejected() -> None:
    """Only earliest and latest are supported."""
    with pytest.raises(TopologyError, match="earliest or latest, not at 'erliest'"):
        StreamsBuilder().stream("in", offset_reset="erliest")
    StreamsBuilder().stream("in", Consumed().with_offset_reset_policy("latest"))


def test_an_operator_has_one_name() -> None:
    """Two Named arguments are an error."""
    with pytest.raises(TypeError, match="one name"):
        built(lambda b, s, t: s.group_by_key().count(NAME, NAME))  # type: ignore[arg-type]


def test_a_stream_is_printed(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    """The output goes to standard output in Kafka's format, or to a file."""
    path = tmp_path / "printed"
    builder = StreamsBuilder()
    stream = builder.stream("in")
    stream.print(Printed.to_sys_out().with_label("seen"))
    stream.print(Printed.to_file(str(path)).with_key_value_mapper(lambda k, v: f"{k}={v}"))
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("a", 1)
    assert capsys.readouterr().out == "[seen]: a, 1\n"
    assert path.read_text() == "[KSTREAM-SOURCE-0000000000]: a=1\n"


def test_stores_of_a_driver_have_the_same_accessors_as_an_application() -> None:
    """Plain values have Kafka's accessors; an unknown name is an error with the known ones."""
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
    """The form is `split().branch(…, Branched.withFunction(…))`."""
    builder = StreamsBuilder()
    chain = Branched.with_function(lambda s: s.map_values(str), "texts")
    branches = builder.stream("in").split(NAME).branch(bool, chain).no_default_branch()
    assert list(branches) == ["nametexts"]
