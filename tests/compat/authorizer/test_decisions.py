"""Ottla's authorizer decides as Apache Kafka's: recorded decisions, and many more with a JVM."""

import pytest

from ottla.security.acls import (
    AccessControlEntry,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from tests.compat.authorizer import worlds
from tests.compat.authorizer.worlds import RECORDED_COUNT, RECORDED_SEED, Question, World

pytestmark = pytest.mark.compat

# Each seed is in one JVM.
_LIVE_COUNT = 50_000


def test_decisions_are_the_recorded_ones_of_kafka() -> None:
    """Thousands of questions about random lists; both decisions are frequent."""
    some = list(worlds.worlds(RECORDED_SEED, RECORDED_COUNT))
    digest, expected = worlds.recorded()
    assert worlds.digest(some) == digest, "record again: the generator has changed"
    assert len(expected) == RECORDED_COUNT
    assert expected.count("1") > RECORDED_COUNT / 5
    assert expected.count("0") > RECORDED_COUNT / 5
    assert worlds.differences(some, expected)[:3] == []


def test_wildcard_concerns_names_that_begin_with_an_asterisk() -> None:
    """Apache Kafka 4.3.0 does not apply the entries of `*` to them: a denial has no effect there."""
    everything = ResourcePattern(ResourceType.GROUP, "*", PatternType.LITERAL)
    denial = AccessControlEntry("User:*", "*", AclOperation.READ, PermissionType.DENY)
    question = Question(("User", "ann"), "10.0.0.1", AclOperation.READ, ResourceType.GROUP, "*x")
    world = World(
        allows_if_no_acl=True,
        super_users="",
        entries=((everything, denial),),
        questions=(question,),
    )
    assert worlds.of_ottla([world]) == "0"


@pytest.mark.needs("java")
@pytest.mark.nightly(
    "tests/compat/authorizer/test_decisions.py::test_decisions_are_the_recorded_ones_of_kafka"
)
def test_many_decisions_are_those_of_kafka() -> None:
    """Questions that were not recorded."""
    some = list(worlds.worlds(2, _LIVE_COUNT))
    assert worlds.differences(some, worlds.of_kafka(some))[:3] == []
