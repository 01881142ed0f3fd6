"""`ottla acl …` with a scripted broker that has an authorizer, and with one without an authorizer."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.client.admin.acls import AclOperation, PatternType, PermissionType, ResourceType
from ottla.wire.messages import create_acls, delete_acls, describe_acls
from tests.unit.client.conftest import ScriptedBroker

Row = tuple[int, str, int, str, str, int, int]


class _Authorizer:
    """The entries of a scripted broker; filters compare names literally."""

    def __init__(self, broker: ScriptedBroker) -> None:
        self.rows: list[Row] = []
        self.broker = broker
        broker.answers["CreateAcls"] = self._create
        broker.answers["DescribeAcls"] = self._describe
        broker.answers["DeleteAcls"] = self._delete

    def _create(self, request: Any) -> create_acls.CreateAclsResponse:
        self.rows += [
            (
                row.resource_type,
                row.resource_name,
                row.resource_pattern_type,
                row.principal,
                row.host,
                row.operation,
                row.permission_type,
            )
            for row in request.creations
        ]
        results = [create_acls.AclCreationResult() for _ in request.creations]
        return create_acls.CreateAclsResponse(results=results)

    def _matching(self, matching: Any) -> list[Row]:
        anything = (None, 1)
        wanted = (
            matching.resource_type_filter,
            matching.resource_name_filter,
            matching.pattern_type_filter,
            matching.principal_filter,
            matching.host_filter,
            matching.operation,
            matching.permission_type,
        )
        return [
            row
            for row in self.rows
            if all(want in anything or want == have for want, have in zip(wanted, row, strict=True))
        ]

    def _describe(self, request: Any) -> describe_acls.DescribeAclsResponse:
        return describe_acls.DescribeAclsResponse(
            resources=[
                describe_acls.DescribeAclsResource(
                    resource_type=row[0],
                    resource_name=row[1],
                    pattern_type=row[2],
                    acls=[describe_acls.AclDescription(
                        principal=row[3], host=row[4], operation=row[5], permission_type=row[6]
                    )],
                )
                for row in self._matching(request)
            ]
        )  # fmt: skip

    def _delete(self, request: Any) -> delete_acls.DeleteAclsResponse:
        results = []
        for matching in request.filters:
            deleted = self._matching(matching)
            self.rows = [row for row in self.rows if row not in deleted]
            results.append(
                delete_acls.DeleteAclsFilterResult(
                    matching_acls=[
                        delete_acls.DeleteAclsMatchingAcl(
                            resource_type=row[0],
                            resource_name=row[1],
                            pattern_type=row[2],
                            principal=row[3],
                            host=row[4],
                            operation=row[5],
                            permission_type=row[6],
                        )
                        for row in deleted
                    ]
                )
            )
        return delete_acls.DeleteAclsResponse(filter_results=results)


@pytest.fixture(name="authorizer")
def _authorizer(
    run: Any, new_broker: Callable[..., ScriptedBroker], monkeypatch: pytest.MonkeyPatch
) -> _Authorizer:
    """Return the entries of a scripted broker, which `run` uses."""
    # `run` names its own cluster in the environment, which this replaces.
    del run
    broker = new_broker()
    monkeypatch.setenv("OTTLA_BOOTSTRAP", broker.bootstrap)
    return _Authorizer(broker)


_READ = (
    int(ResourceType.TOPIC),
    "a",
    int(PatternType.LITERAL),
    "User:ann",
    "*",
    int(AclOperation.READ),
    int(PermissionType.ALLOW),
)
_SHOWN = {
    "resource_type": "TOPIC",
    "name": "a",
    "pattern_type": "LITERAL",
    "principal": "User:ann",
    "host": "*",
    "operation": "READ",
    "permission_type": "ALLOW",
}
_ADD = ("acl", "add", "--topic", "a", "--allow-principal", "User:ann", "--operation", "Read")


def test_entry_is_added_listed_and_removed(run: Any, authorizer: _Authorizer) -> None:
    """Dry runs change nothing; an entry that exists is not added again."""
    dry = run(*_ADD, "--dry-run", "--output", "json")
    assert (dry.json, authorizer.rows) == ([{**_SHOWN, "executed": False}], [])
    assert "Dry run" in dry.errors
    assert run(*_ADD, "--output", "json").json == [{**_SHOWN, "executed": True}]
    assert authorizer.rows == [_READ]
    assert "exist already" in run(*_ADD).errors
    assert run("acl", "list", "--output", "json").json == [_SHOWN]
    row = ["TOPIC", "a", "LITERAL", "User:ann", "ALLOW", "READ", "*"]
    assert run("acl", "list", "--principal", "User:ann").rows == [row]
    assert run("acl", "list", "--topic", "b").errors.startswith("No entries.")
    remove = ("acl", "remove", "--topic", "a")
    assert run(*remove, "--dry-run").rows == [row]
    assert authorizer.rows == [_READ]
    done = run(*remove, "--yes", "--output", "json")
    assert (done.json, authorizer.rows) == ([{**_SHOWN, "executed": True}], [])
    assert "no such entries" in run(*remove, "--yes").errors


def test_role_adds_the_operations_it_needs(run: Any, authorizer: _Authorizer) -> None:
    """A consumer reads the topic and the group, a producer also creates the topic."""
    line = ("--allow-principal", "User:ann", "--topic", "a", "--group", "g")
    run("acl", "add", *line, "--consumer", "--producer")
    assert {(ResourceType(row[0]).name, AclOperation(row[5]).name) for row in authorizer.rows} == {
        ("TOPIC", "READ"),
        ("TOPIC", "WRITE"),
        ("TOPIC", "CREATE"),
        ("TOPIC", "DESCRIBE"),
        ("GROUP", "READ"),
    }


@pytest.mark.parametrize(
    ("command_line", "sentence"),
    [
        (["--allow-principal", "User:ann"], "You must provide at least one resource"),
        (["--topic", "a"], "You must specify one of: --allow-principal, --deny-principal"),
        (["--topic", "a", "--allow-principal", "ann"], "format principalType:principalName"),
        (["--topic", "a", "--operation", "Fly"], "'Fly' is not one of"),
        (["--topic", "a", "--pattern-type", "any"], "'any' is not one of"),
        (
            ["--group", "g", "--allow-principal", "User:ann", "--operation", "Write"],
            "ResourceType GROUP only supports operations",
        ),
        (
            ["--topic", "a", "--consumer"],
            "With --consumer you must specify a --topic and a --group",
        ),
        (["--group", "a", "--producer"], "With --producer you must specify a --topic"),
        (["--topic", "a", "--idempotent"], "only available if --producer is set"),
        (["--topic", "a", "--producer", "--operation", "Read"], "--operation cannot be combined"),
    ],
)
def test_wrong_entry_is_a_sentence(
    run: Any, authorizer: _Authorizer, command_line: list[str], sentence: str
) -> None:
    """No entry is added, and the broker is not asked."""
    done = run("acl", "add", *command_line)
    assert (done.code, done.out) == (2, b"")
    assert sentence in done.errors
    assert authorizer.broker.names() == []


def test_removal_needs_a_resource(run: Any, authorizer: _Authorizer) -> None:
    """A principal alone does not select entries: that would remove the entries of all resources."""
    run(*_ADD)
    done = run("acl", "remove", "--allow-principal", "User:ann", "--yes")
    assert (done.code, done.out) == (2, b"")
    assert "at least one resource" in done.errors
    assert authorizer.rows == [_READ]


@pytest.mark.parametrize(
    "command_line", [["acl", "list"], [*_ADD], ["acl", "remove", "--topic", "a", "--yes"]]
)
def test_cluster_without_an_authorizer_is_a_sentence(run: Any, command_line: list[str]) -> None:
    """Ottla's broker has no authorizer by default."""
    done = run(*command_line)
    assert (done.code, done.out) == (1, b"")
    assert "the cluster has no access control lists: its brokers need an authorizer" in done.errors
