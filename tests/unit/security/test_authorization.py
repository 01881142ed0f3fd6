"""Decisions by access control lists, compared with a naive model."""

from collections.abc import Iterable
from itertools import permutations

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
from ottla.security.authorization import AccessLists, Requester, Rules
from ottla.security.principal import Principal

ANN = Requester(Principal("User", "ann"), "10.0.0.1")
TOPIC = ResourceType.TOPIC
ALLOW, DENY = PermissionType.ALLOW, PermissionType.DENY
ALL, READ, WRITE, DESCRIBE = (
    AclOperation.ALL,
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.DESCRIBE,
)
RULES = Rules()
NAMES = ["a", "ab", "abc", "b", "*"]

bindings = st.builds(
    AclBinding,
    st.builds(
        ResourcePattern,
        st.sampled_from([TOPIC, ResourceType.GROUP]),
        st.sampled_from(NAMES),
        st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    ),
    st.builds(
        AccessControlEntry,
        st.sampled_from(["User:ann", "User:ben", "User:*", "Group:ann"]),
        st.sampled_from(["10.0.0.1", "10.0.0.2", "*"]),
        st.sampled_from([op for op in AclOperation if op >= ALL]),
        st.sampled_from([ALLOW, DENY]),
    ),
)
lists_of = st.lists(bindings, max_size=6)
concrete = st.sampled_from([op for op in AclOperation if op > ALL])


def access_lists(entries: Iterable[AclBinding]) -> AccessLists:
    """Return the lists with these entries."""
    lists = AccessLists()
    for pattern, entry in entries:
        lists.replace(pattern, {*lists.entries(pattern), entry})
    return lists


def test_decision_names_the_entry_that_made_it() -> None:
    """An entry that denies wins; of several that allow, the first by order is named."""
    topic = ResourcePattern(TOPIC, "abc")
    prefix = ResourcePattern(TOPIC, "a", PatternType.PREFIXED)
    read = AclBinding(topic, AccessControlEntry("User:ann", "*", READ, ALLOW))
    every = AclBinding(prefix, AccessControlEntry("User:*", "*", ALL, ALLOW))
    denied = AclBinding(prefix, AccessControlEntry("User:*", "10.0.0.1", WRITE, DENY))
    lists = access_lists([every, read, denied])

    def decide(
        operation: AclOperation, name: str = "abc", rules: Rules = RULES
    ) -> tuple[bool, str]:
        decision = lists.decide(rules, ANN, operation, TOPIC, name)
        return decision.is_allowed, decision.rule

    assert decide(READ) == (True, "ALLOW ALL to User:* from * on PREFIXED TOPIC a")
    assert decide(WRITE) == (False, "DENY WRITE to User:* from 10.0.0.1 on PREFIXED TOPIC a")
    assert decide(READ, "b") == (False, "no ACL for the resource")
    assert decide(READ, "b", Rules(allows_if_no_acl=True))[0]
    assert decide(WRITE, rules=Rules(frozenset({ANN.principal}))) == (True, "super user")


def test_rule_of_an_entry_with_unknown_values_is_its_effect() -> None:
    """As DescribeAcls shows the entry: by its stored values it would deny nothing."""
    entry = AccessControlEntry("User:ann", None, AclOperation.UNKNOWN, PermissionType.UNKNOWN)
    lists = access_lists([AclBinding(ResourcePattern(TOPIC, "abc"), entry)])
    assert lists.decide(RULES, ANN, READ, TOPIC, "abc").rule == (
        "DENY ALL to User:ann from * on LITERAL TOPIC abc, by an entry with unknown values"
    )


def test_of_several_denials_the_first_is_named() -> None:
    """The order of a set differs from process to process."""
    topic = ResourcePattern(TOPIC, "abc")
    entries = [
        AccessControlEntry("User:ann", host, operation, DENY)
        for host in ("*", "10.0.0.1")
        for operation in (ALL, READ)
    ]
    for ordered in permutations(entries):
        lists = access_lists(AclBinding(topic, entry) for entry in ordered)
        assert lists.decide(RULES, ANN, READ, TOPIC, "abc").rule.startswith(
            "DENY ALL to User:ann from *"
        )


def allow(*entries: AclBinding, operation: AclOperation = READ, name: str = "abc") -> bool:
    """Return the decision about ann."""
    return access_lists(entries).allow(Rules(), ANN, operation, TOPIC, name)


def on(
    name: str,
    principal: str = "User:ann",
    host: str = "*",
    operation: AclOperation = READ,
    permission: PermissionType = ALLOW,
    *,
    prefixed: bool = False,
) -> AclBinding:
    """Return a binding of topics."""
    pattern_type = PatternType.PREFIXED if prefixed else PatternType.LITERAL
    return AclBinding(
        ResourcePattern(TOPIC, name, pattern_type),
        AccessControlEntry(principal, host, operation, permission),
    )


def naive(
    entries: list[AclBinding], rules: Rules, operation: AclOperation, kind: ResourceType, name: str
) -> bool:
    """Decide in the words of the documentation of Kafka."""
    implied_by = {DESCRIBE: [READ, WRITE, AclOperation.DELETE, AclOperation.ALTER]}
    implied_by[AclOperation.DESCRIBE_CONFIGS] = [AclOperation.ALTER_CONFIGS]
    if ANN.principal in rules.super_users:
        return True
    concerned = [
        entry
        for pattern, entry in entries
        if pattern.resource_type == kind
        and (
            pattern.name in (name, "*")
            if pattern.pattern_type is PatternType.LITERAL
            else name.startswith(pattern.name or "")
        )
    ]
    if not concerned:
        return rules.allows_if_no_acl
    mine = [
        entry
        for entry in concerned
        if entry.principal in ("User:ann", "User:*") and entry.host in ("10.0.0.1", "*")
    ]
    if any(e.permission_type is DENY and e.operation in (operation, ALL) for e in mine):
        return False
    enough = [operation, ALL, *implied_by.get(operation, [])]
    return any(e.permission_type is ALLOW and e.operation in enough for e in mine)


@given(lists_of, st.booleans(), concrete, st.sampled_from([*NAMES, "abcd", "z"]))
def test_decisions_are_those_of_the_model(
    entries: list[AclBinding], allows: bool, operation: AclOperation, name: str
) -> None:
    """The decisions agree for any entries, operation and resource."""
    rules = Rules(allows_if_no_acl=allows)
    expected = naive(entries, rules, operation, TOPIC, name)
    assert access_lists(entries).allow(rules, ANN, operation, TOPIC, name) == expected


@given(lists_of, concrete)
def test_any_resource_is_allowed_if_one_is(
    entries: list[AclBinding], operation: AclOperation
) -> None:
    """Names that no entry has count too; implied operations do not."""
    mentioned = {pattern.name or "" for pattern, _ in entries}
    names = {*mentioned, *(f"{name}~" for name in mentioned), "~"} - {"*"}
    exact = [
        binding
        for binding in entries
        if binding.entry.operation in (operation, ALL) and binding.pattern.name != "*"
    ] + [
        binding
        for binding in entries
        if binding.entry.operation in (operation, ALL)
        and binding.pattern == ResourcePattern(TOPIC, "*")
    ]
    rules = Rules()
    expected = any(naive(exact, rules, operation, TOPIC, name) for name in names)
    assert access_lists(exact).allow_any(rules, ANN, operation, TOPIC) == expected


@given(lists_of, st.data())
def test_removed_entries_leave_nothing(entries: list[AclBinding], data: st.DataObject) -> None:
    """Lists from which some entries were removed decide like those that never had them."""
    removed = data.draw(st.sets(st.sampled_from(entries))) if entries else set()
    rest = [binding for binding in entries if binding not in removed]
    lists = access_lists(entries)
    for pattern, entry in removed:
        lists.replace(pattern, lists.entries(pattern) - {entry})
    for name in (*NAMES, "abcd"):
        expected = naive(rest, Rules(), READ, TOPIC, name)
        assert lists.allow(Rules(), ANN, READ, TOPIC, name) == expected
    assert set(lists.matching(AclBinding())) == set(rest)


unknown_entries = st.builds(
    AccessControlEntry,
    st.sampled_from(["User:ann", "User:ben", "User:*", "ann", ""]),
    st.sampled_from(["10.0.0.1", "10.0.0.2", "*", ""]),
    st.sampled_from(AclOperation),
    st.sampled_from(PermissionType),
).filter(lambda entry: acls.effective(entry) != entry)


@given(lists_of, unknown_entries, st.booleans(), concrete, st.sampled_from(NAMES))
def test_entry_with_unknown_values_grants_nothing(
    entries: list[AclBinding],
    unknown: AccessControlEntry,
    allows: bool,
    operation: AclOperation,
    name: str,
) -> None:
    """Neither by itself nor beside other entries, and whatever the default is."""
    rules, lists = Rules(allows_if_no_acl=allows), access_lists(entries)
    pattern = ResourcePattern(TOPIC, name)
    before = lists.allow(rules, ANN, operation, TOPIC, name)
    some = lists.allow_any(rules, ANN, operation, TOPIC)
    lists.replace(pattern, {*lists.entries(pattern), unknown})
    assert lists.allow(rules, ANN, operation, TOPIC, name) <= before
    assert lists.allow_any(rules, ANN, operation, TOPIC) <= some
    lists.replace(pattern, {unknown})
    assert not access_lists([AclBinding(pattern, unknown)]).allow(
        rules, ANN, operation, TOPIC, name
    )


@pytest.mark.parametrize(
    ("principal", "host", "operation", "permission"),
    [
        ("User:ann", "*", READ, PermissionType.UNKNOWN),
        ("User:ann", "*", READ, PermissionType.ANY),
        ("User:ann", "*", AclOperation.UNKNOWN, PermissionType.UNKNOWN),
        ("User:ann", "*", AclOperation.UNKNOWN, DENY),
        ("User:*", "10.0.0.1", AclOperation.ANY, DENY),
        ("ann", "*", READ, DENY),
        ("User:ann", "", READ, DENY),
        tuple(acls.UNREADABLE),
    ],
)
def test_entry_that_may_be_a_denial_denies(
    principal: str, host: str, operation: AclOperation, permission: PermissionType
) -> None:
    """The right of another entry does not open the resource."""
    granted = on("abc", operation=ALL)
    assert allow(granted)
    doubtful = on("abc", principal, host, operation, permission)
    assert not allow(granted, doubtful)
    assert not access_lists([granted, doubtful]).allow_any(Rules(), ANN, READ, TOPIC)
    (listed,) = {*access_lists([granted, doubtful]).matching(AclBinding())} - {granted}
    assert not listed.is_unknown
    assert listed.entry.permission_type is DENY


@pytest.mark.parametrize(
    ("principal", "host", "operation"),
    [
        ("User:ann", "*", AclOperation.UNKNOWN),
        ("User:ann", "*", AclOperation.ANY),
        ("ann", "*", READ),
        ("User:ann", "", READ),
    ],
)
def test_unknown_permission_of_a_user_allows_nothing(
    principal: str, host: str, operation: AclOperation
) -> None:
    """It takes no right away, is not listed, and keeps the resource closed for everyone else."""
    unknown = on("abc", principal, host, operation)
    assert not allow(unknown)
    assert allow(unknown, on("abc"))
    lists = access_lists([unknown])
    assert not lists.allow(Rules(allows_if_no_acl=True), ANN, READ, TOPIC, "abc")
    assert lists.matching(AclBinding()) == []


def test_denial_wins() -> None:
    """It wins over an entry of the same pattern, and over one that is closer to the name."""
    assert allow(on("abc"))
    assert not allow(on("abc"), on("a", "User:ann", "*", ALL, DENY, prefixed=True))
    assert not allow(on("abc"), on("*", "User:*", "10.0.0.1", READ, DENY))
    assert allow(on("abc"), on("abc", "User:ann", "10.0.0.2", READ, DENY))


@pytest.mark.parametrize("operation", [READ, WRITE, AclOperation.DELETE, AclOperation.ALTER])
def test_permission_implies_describe(operation: AclOperation) -> None:
    """A denial of it does not deny describe."""
    permitted = on("abc", "User:ann", "*", operation)
    assert allow(permitted, operation=DESCRIBE)
    denied = on("abc", "User:ann", "*", operation, DENY)
    assert allow(on("abc", "User:ann", "*", DESCRIBE), denied, operation=DESCRIBE)


def test_super_user_needs_no_entry() -> None:
    """No entry denies it anything."""
    rules = Rules.parse("User:root; User:ann", allows_if_no_acl=False)
    lists = access_lists([on("abc", "User:*", "*", ALL, DENY)])
    assert lists.allow(rules, ANN, READ, TOPIC, "abc")
    assert lists.allow_any(rules, ANN, WRITE, TOPIC)


def test_without_entries_the_option_decides() -> None:
    """An entry for another user is an entry."""
    everyone = Rules(allows_if_no_acl=True)
    lists = access_lists([on("abc", "User:ben")])
    assert lists.allow(everyone, ANN, READ, TOPIC, "z")
    assert not lists.allow(everyone, ANN, READ, TOPIC, "abc")
    assert not lists.allow(Rules(), ANN, READ, TOPIC, "z")


def test_super_user_is_a_principal() -> None:
    """A name without a type is refused."""
    with pytest.raises(ValueError, match="'ann' is not a principal such as User:ann"):
        Rules.parse("ann", allows_if_no_acl=False)


def test_bindings_are_found_by_a_filter() -> None:
    """They are sorted by their patterns."""
    entries = [on("b"), on("a", prefixed=True), on("a")]
    found = access_lists(entries).matching(AclBinding())
    assert found == [on("a"), on("a", prefixed=True), on("b")]
    assert access_lists(entries).matching(AclBinding(ResourcePattern(TOPIC, "b"))) == [on("b")]
