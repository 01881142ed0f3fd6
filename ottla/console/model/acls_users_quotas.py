"""ACLs, SCRAM users and client quotas, as far as the cluster serves them.

Each function raises Unsupported if the cluster lacks the API; `supported` lists the served ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.console.model.changes import Change
from ottla.console.model.connections import ClusterConnection, planned


@dataclass(frozen=True, slots=True)
class Support:
    """The subjects that a cluster serves."""

    acls: bool
    users: bool
    quotas: bool


@dataclass(frozen=True, slots=True)
class Acl:
    """An access rule, in Kafka's words: resource type "topic", pattern "literal" or "prefixed",
    operation "read", permission "allow" or "deny".
    """

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """A mechanism ("SCRAM-SHA-256", "SCRAM-SHA-512") of a user with its iterations."""

    mechanism: str
    iterations: int


@dataclass(frozen=True, slots=True)
class UserRow:
    """A user with SCRAM credentials; passwords are never readable."""

    name: str
    credentials: tuple[ScramCredential, ...]


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """Limits of an entity; its parts are "user", "client-id" or "ip", and None is the default.

    `limits` are by quota name: "producer_byte_rate", "consumer_byte_rate", "request_percentage",
    "controller_mutation_rate", "connection_creation_rate".
    """

    entity: Mapping[str, str | None]
    limits: Mapping[str, float]


def read_support(connection: ClusterConnection) -> Support:
    """Return the subjects that the cluster serves."""
    raise planned()


def list_acls(connection: ClusterConnection) -> list[Acl]:
    """Return all ACLs, by resource and principal; ApiError SECURITY_DISABLED if there is no authorizer."""
    raise planned()


def create_acl(connection: ClusterConnection, acl: Acl) -> Change:
    """Add an ACL."""
    raise planned()


def delete_acl(connection: ClusterConnection, acl: Acl) -> Change:
    """Delete exactly this ACL; ConfigError if there is none."""
    raise planned()


def list_users(connection: ClusterConnection) -> list[UserRow]:
    """Return the users with SCRAM credentials by name."""
    raise planned()


def set_password(
    connection: ClusterConnection,
    user: str,
    password: str,
    *,
    mechanism: str = "SCRAM-SHA-512",
    iterations: int = 4096,
) -> Change:
    """Create a user or change its password; the cluster receives only the salted password."""
    raise planned()


def delete_credential(connection: ClusterConnection, user: str, mechanism: str) -> Change:
    """Delete one mechanism of a user."""
    raise planned()


def list_quotas(connection: ClusterConnection) -> list[QuotaRow]:
    """Return the limits of all entities."""
    raise planned()


def alter_quota(
    connection: ClusterConnection,
    entity: Mapping[str, str | None],
    limits: Mapping[str, float | None],
) -> Change:
    """Set limits of an entity; None removes a limit."""
    raise planned()
