"""Every name of Kafka Streams exists here in snake_case, or its alternative is documented."""

import re

from ottla import streams
from tests.streams.api.compare import (
    NOT_DONE,
    OURS,
    SAID,
    covered_by,
    java_names,
    missing,
    module_headers,
    page_table,
)

MISSING = list(missing())


def test_each_name_of_kafka_streams_exists_or_is_documented() -> None:
    """The names are those that javap prints for Kafka's jars (api/record.py)."""
    silent = [
        each for each in MISSING if not (covered_by(each, SAID) or covered_by(each, NOT_DONE))
    ]
    assert silent == [], "build these, or say in docs/streams.md or a header what to do instead"


def test_classes_are_imported_from_one_place() -> None:
    """Programs use `from ottla.streams import`; the other classes are only types of values."""
    others = {"ConnectedStoreProvider", "ProcessingContext", "Window"}
    others |= {"ReadOnlyKeyValueStore", "ReadOnlySessionStore", "ReadOnlyWindowStore"}
    expected = {each for each in OURS if "$" not in each} - others
    assert sorted(each for each in expected if not hasattr(streams, each)) == []


def test_names_with_another_form_are_in_the_table() -> None:
    """The table is on the page for Java users."""
    table = page_table()
    assert [word for word in SAID.values() if word not in table] == []


def test_unsupported_names_are_in_a_module_header() -> None:
    """The page docs/gaps.md is generated from these headers."""
    headers = module_headers()
    assert [word for word in NOT_DONE.values() if word not in headers] == []


def test_existing_names_are_not_listed_as_missing() -> None:
    """A name that is implemented must be removed from the lists."""
    stale = [
        known
        for known in (*SAID, *NOT_DONE)
        if not any(re.fullmatch(known, each) for each in MISSING)
    ]
    assert stale == []


def test_our_classes_are_compared_with_existing_ones() -> None:
    """An unknown class of Kafka would be compared with nothing."""
    names = java_names()
    assert len(names) > 200
    assert [line for line in OURS if line not in names] == []
