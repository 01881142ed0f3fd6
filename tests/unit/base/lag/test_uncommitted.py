"""Partitions that a group reads without a commit."""

from typing import Any

import pytest

from ottla.base.lag.uncommitted import uncommitted_keys


@pytest.mark.parametrize(
    ("committed", "assigned", "protocol_type", "missing"),
    [
        ({("a", 0)}, set(), "consumer", {("a", 1)}),
        ({("a", 0)}, set(), "", set()),
        (set(), {("a", 1), ("gone", 0)}, "", {("a", 1)}),
    ],
)
def test_partitions_without_a_commit(
    committed: set[Any], assigned: set[Any], protocol_type: str, missing: set[Any]
) -> None:
    """They are assigned, or of a topic that a subscribed group has committed."""
    assert uncommitted_keys(committed, assigned, {"a": 2}, protocol_type) == missing
