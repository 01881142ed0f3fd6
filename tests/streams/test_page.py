"""docs/streams.md says what happens: each example is run, and each operator has one."""

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
from tests.streams.page import PAGE, Example, examples, play

EXAMPLES = examples()

# What only builders and engines ask, and getters, which need no example.
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
OF_ENGINES |= {"task_partition"}


@pytest.mark.parametrize("example", EXAMPLES, ids=[each.code.split("\n")[0] for each in EXAMPLES])
def test_an_example_does_what_the_page_says(example: Example) -> None:
    """What goes out stands below what comes in, record for record."""
    assert play(example) == list(example.lines)


def test_most_examples_say_what_happens() -> None:
    """An example without records checks itself."""
    silent = [each.code for each in EXAMPLES if not each.lines and "assert" not in each.code]
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
    """A new operator comes with one."""
    code = "\n".join(each.code for each in EXAMPLES)
    operators = {name for name in dir(kind) if not name.startswith("_")}
    operators -= {"queryable_store_name", "plan", "build", *OF_ENGINES}
    missing = [name for name in sorted(operators) if not re.search(rf"\.{name}\(", code)]
    assert not missing, f"{PAGE.name} has no example of {missing}"
