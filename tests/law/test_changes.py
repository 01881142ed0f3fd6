"""Verbs, scripts and pages change a cluster through `operations`, which returns the change."""

import ast
from collections.abc import Iterator

from tests.law import source

_ADMIN, _MESSAGES = "ottla.client.admin", "ottla.wire.messages"
# The functions of `client/admin` that change a cluster, and the requests.
_CHANGING = frozenset(
    {
        *("create_topic", "create_partitions", "delete_topic", "delete_records", "alter_config"),
        *("create_acls", "delete_acls", "alter_client_quotas", "alter_user_scram_credentials"),
        *("create_delegation_token", "renew_delegation_token", "expire_delegation_token"),
        *("fence_producer", "abort_transaction", "elect_leaders", "try_elections"),
        *("update_features", "add_raft_voter", "remove_raft_voter", "unregister_broker"),
        *("alter_partition_reassignments", "try_reassignments", "move_replicas"),
        *("delete_group", "remove_members", "commit_offsets", "delete_group_offsets"),
        *("try_offset_deletions", "share_offset_deletions", "delete_share_group_offsets"),
        "alter_share_group_offsets",
        *("CreateTopicsRequest", "CreatePartitionsRequest", "DeleteTopicsRequest"),
        *("DeleteRecordsRequest", "AlterConfigsRequest", "IncrementalAlterConfigsRequest"),
        *("CreateAclsRequest", "DeleteAclsRequest", "AlterClientQuotasRequest"),
        *("AlterUserScramCredentialsRequest", "CreateDelegationTokenRequest"),
        *("RenewDelegationTokenRequest", "ExpireDelegationTokenRequest"),
        *("WriteTxnMarkersRequest", "ElectLeadersRequest", "AlterReplicaLogDirsRequest"),
        *("AlterPartitionReassignmentsRequest", "DeleteGroupsRequest", "LeaveGroupRequest"),
        *("OffsetCommitRequest", "OffsetDeleteRequest", "UpdateFeaturesRequest"),
        *("AddRaftVoterRequest", "RemoveRaftVoterRequest", "UnregisterBrokerRequest"),
    }
)


def _calls(item: source.Source) -> Iterator[tuple[str, int]]:
    """Yield the calls of functions and requests that a file imports from `client/admin` and
    `wire/messages`, by name or module.
    """
    names: dict[str, str] = {}
    modules: set[str] = set()
    for node in source.nodes(item.tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith((_ADMIN, _MESSAGES)):
            for alias in node.names:
                names[alias.asname or alias.name] = alias.name
                modules.add(alias.asname or alias.name)
    for node in source.nodes(item.tree):
        if not isinstance(node, ast.Call) or any(
            word.arg == "validate_only" and ast.unparse(word.value) == "True"
            for word in node.keywords
        ):
            continue
        if isinstance(node.func, ast.Name):
            yield names.get(node.func.id, ""), node.lineno
        elif isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            yield node.func.attr if node.func.value.id in modules else "", node.lineno


def test_verbs_scripts_and_pages_change_clusters_through_operations() -> None:
    """Otherwise the verbs and the audit log of the console would describe changes differently."""
    offences = {
        f"{item.path}:{name}": f"line {line}: call ottla/operations"
        for item in source.sources("ottla/tools", "ottla/console", "ottla_scripts")
        for name, line in _calls(item)
        if name in _CHANGING
    }
    assert source.complaints("changes", offences, "Go through operations:") == []


def test_calls_are_recognised_by_name_and_by_module() -> None:
    """Functions of the same name from elsewhere do not count, nor calls that only validate."""
    text = """
from ottla.client.admin import topics as admin
from ottla.client.admin.acls import create_acls as create
from ottla.operations.topics import delete_topic
from ottla.wire.messages.create_topics import CreateTopicsRequest
CreateTopicsRequest(topics=[])
admin.delete_topic(1)
create(2)
delete_topic(3)
admin.create_topic(4, validate_only=True)
"""
    item = source.Source("ottla/tools/x.py", text, ast.parse(text))
    names = [name for name, _ in _calls(item) if name]
    assert names == ["CreateTopicsRequest", "delete_topic", "create_acls"]
