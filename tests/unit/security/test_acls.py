"""Entries of access control lists and their filters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.security import acls
from ottla.security.acls import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)

TOPIC = ResourceType.TOPIC


@pytest.mark.parametrize(
    ("name", "pattern_type", "matched"),
    [
        (None, PatternType.ANY, {"t", "*", "t-", "t-1"}),
        ("t", PatternType.LITERAL, {"t"}),
        ("t-", PatternType.PREFIXED, {"t-"}),
        ("t", PatternType.ANY, {"t"}),
        ("t-1", PatternType.MATCH, {"t-", "t-1", "*"}),
        ("*", PatternType.LITERAL, {"*"}),
        (None, PatternType.PREFIXED, {"t-"}),
    ],
)
def test_filter_by_name_and_type(
    name: str | None, pattern_type: PatternType, matched: set[str]
) -> None:
    """MATCH finds every pattern that concerns a resource of that name."""
    patterns = [ResourcePattern(TOPIC, name) for name in ("t", "t-1", "*")]
    patterns.append(ResourcePattern(TOPIC, "t-", PatternType.PREFIXED))
    wanted = ResourcePattern(ResourceType.ANY, name, pattern_type)
    found = {pattern.name for pattern in patterns if acls.pattern_matches(wanted, pattern)}
    assert found == matched


def test_filter_by_entry() -> None:
    """None and ANY match everything; other values match themselves only."""
    entry = AccessControlEntry("User:ann", "*", AclOperation.READ, PermissionType.ALLOW)
    assert acls.entry_matches(AccessControlEntry(), entry)
    assert acls.entry_matches(AccessControlEntry(principal="User:ann", host="*"), entry)
    for other in (
        AccessControlEntry(principal="User:*"),
        AccessControlEntry(host="10.0.0.1"),
        AccessControlEntry(operation=AclOperation.ALL),
        AccessControlEntry(permission_type=PermissionType.DENY),
    ):
        assert not acls.entry_matches(other, entry)


def test_values_of_filters_and_of_newer_brokers_are_recognized() -> None:
    """A binding to create must have neither."""
    assert acls.ANY.is_filter
    assert not acls.ANY.is_unknown
    unknown = AccessControlEntry("User:a", "*", AclOperation(99), PermissionType.ALLOW)
    binding = AclBinding(ResourcePattern(TOPIC, "t"), unknown)
    assert binding.is_unknown
    assert not binding.is_filter


@given(
    st.sampled_from([ResourceType.ANY, TOPIC, ResourceType.GROUP]),
    st.sampled_from([None, "a", "ab", "*"]),
    st.sampled_from(
        [PatternType.ANY, PatternType.MATCH, PatternType.LITERAL, PatternType.PREFIXED]
    ),
)
def test_listed_patterns_are_all_that_a_filter_matches(
    resource_type: ResourceType, name: str | None, pattern_type: PatternType
) -> None:
    """A filter whose patterns cannot be listed lists none."""
    wanted = ResourcePattern(resource_type, name, pattern_type)
    exact = acls.exact_patterns(wanted)
    universe = [
        ResourcePattern(kind, known, form)
        for kind in (TOPIC, ResourceType.GROUP)
        for known in ("a", "ab", "*")
        for form in (PatternType.LITERAL, PatternType.PREFIXED)
    ]
    matched = {pattern for pattern in universe if acls.pattern_matches(wanted, pattern)}
    assert not exact or set(exact) == matched
