"""Names in camelCase are rejected with a suggestion in snake_case."""

from typing import Any

import pytest

from ottla.streams import (
    Materialized,
    Serdes,
    StreamsBuilder,
    TimeWindows,
    Topology,
    TopologyTestDriver,
)
from ottla.streams.model.spelling import snake_case


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda: StreamsBuilder().globalTable, "StreamsBuilder has no globalTable.*global_table"),
        (lambda: StreamsBuilder().stream("in").mapValues, "did you mean map_values"),
        (lambda: StreamsBuilder().stream("in").groupByKey, "did you mean group_by_key"),
        (lambda: StreamsBuilder().table("in").toStream, "did you mean to_stream"),
        (lambda: StreamsBuilder().stream("in").filtr, "did you mean filter"),
        (lambda: Topology().addSource, "did you mean add_source"),
        (lambda: TimeWindows.ofSizeWithNoGrace, "did you mean of_size_with_no_grace"),
        (lambda: Materialized.as_("x").withKeySerde, "did you mean with_key_serde"),
        (lambda: Serdes.String, "Serdes has no String; did you mean string"),
        (lambda: TopologyTestDriver.createInputTopic, "did you mean create_input_topic"),
        (lambda: StreamsBuilder().nothing_like_it, "has no nothing_like_it$"),
    ],
)
def test_an_unknown_name_is_rejected_with_a_suggestion(ask: Any, sentence: str) -> None:
    """This applies to objects and classes, and to misspelt names, too."""
    with pytest.raises(AttributeError, match=sentence):
        ask()


def test_reserved_words_get_an_underscore() -> None:
    """An example is Materialized.as_."""
    assert [snake_case(each) for each in ("as", "with", "ofTimeDifference")] == [
        "as_",
        "with_",
        "of_time_difference",
    ]
