"""The znodes of access rules: the part of the catalogue (`znodes`) that only authorization reads.

Rules are kept as the strings of their JSON; `security` interprets them, also those that have
strings of other programs or none.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ottla.cluster.znodes import UnreadableNode, decode_json, encode_json

_VERSION = 1


class AclEntry(NamedTuple):
    """One rule of a resource, in the strings of its JSON: `Allow` or `Deny`, `Read`, `All`…

    A string that is missing is empty.
    """

    principal: str
    permission: str
    host: str
    operation: str


_FIELDS = ("principal", "permissionType", "host", "operation")


class AclNode:
    """The rules of one resource; literal and prefixed patterns live in two trees (KIP-290)."""

    LITERAL_ROOT = "/kafka-acl"
    EXTENDED_ROOT = "/kafka-acl-extended"
    RESOURCE_TYPES = ("Topic", "Group", "Cluster", "TransactionalId", "DelegationToken", "User")

    @staticmethod
    def root(pattern_type: str) -> str:
        """Return the tree of `literal` or `prefixed` patterns."""
        if pattern_type == "literal":
            return AclNode.LITERAL_ROOT
        return f"{AclNode.EXTENDED_ROOT}/{pattern_type}"

    @staticmethod
    def path(pattern_type: str, resource_type: str, name: str) -> str:
        """Return the path of one resource, such as (`literal`, `Topic`, `clicks`)."""
        return f"{AclNode.root(pattern_type)}/{resource_type}/{name}"

    @staticmethod
    def encode(entries: Iterable[AclEntry]) -> bytes:
        """Return the content, version 1."""
        rows = [dict(zip(_FIELDS, entry, strict=True)) for entry in entries]
        return encode_json({"acls": rows, "version": _VERSION})

    @staticmethod
    def decode(path: str, data: bytes) -> list[AclEntry]:
        """Return the rules; an empty node has no rules, as in Kafka. UnreadableNode if it is
        damaged.
        """
        if not data:
            return []
        content = decode_json(path, data)
        rows = content.get("acls") or []
        if content["version"] != _VERSION or not isinstance(rows, list):
            raise UnreadableNode(path)
        return [AclEntry(*(_text(row, field) for field in _FIELDS)) for row in rows]


def _text(row: object, field: str) -> str:
    value = row.get(field) if isinstance(row, dict) else None
    return value if isinstance(value, str) else ""


class AclChangeNode:
    """Sequential: notifies every broker that the rules of a resource have changed."""

    LITERAL_PARENT = "/kafka-acl-changes"
    EXTENDED_PARENT = "/kafka-acl-extended-changes"
    LITERAL_PREFIX = f"{LITERAL_PARENT}/acl_changes_"
    EXTENDED_PREFIX = f"{EXTENDED_PARENT}/acl_changes_"

    @staticmethod
    def encode(pattern_type: str, resource_type: str, name: str) -> bytes:
        """Return the content; the resource type in capitals, such as `TRANSACTIONAL_ID`."""
        if pattern_type == "literal":
            return f"{resource_type}:{name}".encode()
        value = {"version": 1, "resourceType": resource_type, "name": name}
        return encode_json(value | {"patternType": pattern_type.upper()})

    @staticmethod
    def decode(path: str, data: bytes) -> tuple[str, str, str]:
        """Return pattern type, resource type and name.

        A literal change is `TYPE:name` in plain text, as before KIP-290.
        """
        if not data.startswith(b"{"):
            resource_type, _, name = data.decode().partition(":")
            return "literal", resource_type, name
        value = decode_json(path, data)
        return str(value["patternType"]).lower(), str(value["resourceType"]), str(value["name"])


ACL_PATHS = (
    *(f"{AclNode.root('literal')}/{name}" for name in AclNode.RESOURCE_TYPES),
    *(f"{AclNode.root('prefixed')}/{name}" for name in AclNode.RESOURCE_TYPES),
    AclChangeNode.LITERAL_PARENT,
    AclChangeNode.EXTENDED_PARENT,
)
