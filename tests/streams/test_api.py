"""Whoever knows Kafka Streams finds each of its names here in snake_case, or is told what to write instead."""

import re

from ottla import streams
from tests.streams.api.compare import (
    NOT_DONE,
    OURS,
    SAID,
    java_names,
    missing,
    module_headers,
    page_table,
    told_by,
)

MISSING = list(missing())


def test_each_name_of_kafka_streams_is_here_or_told_of() -> None:
    """The names are those that javap tells of Kafka's jars (api/record.py)."""
    silent = [each for each in MISSING if not (told_by(each, SAID) or told_by(each, NOT_DONE))]
    assert silent == [], "build these, or say in docs/streams.md or a header what to do instead"


def test_classes_are_imported_from_one_place() -> None:
    """`from ottla.streams import` any class that is written in a program; the others are what methods return or take."""
    others = {"ConnectedStoreProvider", "ProcessingContext", "Window"}
    others |= {"ReadOnlyKeyValueStore", "ReadOnlySessionStore", "ReadOnlyWindowStore"}
    wanted = {each for each in OURS if "$" not in each} - others
    assert sorted(each for each in wanted if not hasattr(streams, each)) == []


def test_what_is_written_otherwise_stands_on_the_page() -> None:
    """In the table for those who come from Java."""
    table = page_table()
    assert [word for word in SAID.values() if word not in table] == []


def test_what_is_not_done_stands_in_a_header() -> None:
    """And so in docs/gaps.md, which is made of headers."""
    headers = module_headers()
    assert [word for word in NOT_DONE.values() if word not in headers] == []


def test_nothing_is_told_of_that_is_here() -> None:
    """Who builds something that was missing takes it out of the lists."""
    stale = [
        known
        for known in (*SAID, *NOT_DONE)
        if not any(re.fullmatch(known, each) for each in MISSING)
    ]
    assert stale == []


def test_classes_of_ours_are_kafkas() -> None:
    """A name that Kafka has not is compared with nothing."""
    names = java_names()
    assert len(names) > 200
    assert [each for each in OURS if each not in names] == []
