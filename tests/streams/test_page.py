"""The examples of the pages of streams work as shown, and each operator has one."""

import re

import pytest

from ottla.streams import (
    BranchedKStream,
    CogroupedKStream,
    KGroupedStream,
    KGroupedTable,
    KStream,
    KTable,
    ProcessorContext,
    SessionWindowedKStream,
    StreamsBuilder,
    TimeWindowedKStream,
    Topology,
)
from tests.streams.page import Example, examples, play

EXAMPLES = examples()

# Methods only for builders and engines, and getters, need no example.
OF_ENGINES = {
    "add",
    "add_global",
    "as_of",
    "check_copartitioning",
    "default_serdes",
    "subtopologies",
}
OF_ENGINES |= {"emit_interval_ms", "application_id", "record_metadata", "key_serde", "value_serde"}
OF_ENGINES |= {"skip"}
OF_ENGINES |= {"connected", "copartitioned", "global_stores", "internal_topics", "nodes", "stores"}
OF_ENGINES |= {"task_partition", "add_part"}


@pytest.mark.parametrize("example", EXAMPLES, ids=[each.code.split("\n")[0] for each in EXAMPLES])
def test_an_example_produces_the_shown_output(example: Example) -> None:
    """Each input record is followed by its output records."""
    assert play(example) == list(example.lines)


def test_examples_without_records_check_themselves() -> None:
    """An example without records contains an assert."""
    silent = [
        example.code for example in EXAMPLES if not example.lines and "assert" not in example.code
    ]
    assert len(EXAMPLES) > 20
    assert not silent


@pytest.mark.parametrize(
    "kind",
    [
        StreamsBuilder,
        KStream,
        KTable,
        KGroupedStream,
        KGroupedTable,
        CogroupedKStream,
        TimeWindowedKStream,
        SessionWindowedKStream,
        BranchedKStream,
        Topology,
        ProcessorContext,
    ],
)
def test_every_operator_has_an_example(kind: type) -> None:
    """A new operator must have an example."""
    code = "\n".join(example.code for example in EXAMPLES)
    operators = {name for name in dir(kind) if not name.startswith("_")}
    operators -= {"queryable_store_name", "plan", "build", *OF_ENGINES}
    missing = [name for name in sorted(operators) if not re.search(rf"\.{name}\(", code)]
    assert not missing, f"the pages of streams have no example of {missing}"
