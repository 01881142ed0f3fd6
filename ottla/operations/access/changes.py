"""Changes of access: entries of access control lists, SCRAM users, quotas, delegation tokens.

Each operation returns its changes, whose values never contain a secret.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.client.admin import acls, quotas, scram
from ottla.client.admin.acls import AclBinding
from ottla.client.admin.apache import delegation_tokens as tokens
from ottla.client.admin.apache.delegation_tokens import DelegationToken
from ottla.client.brokers import Brokers
from ottla.operations.access.entries import words_of
from ottla.operations.changes import MASKED, Change, if_allowed


def add_entries(
    brokers: Brokers, bindings: Iterable[AclBinding], *, cluster: str = ""
) -> list[Change]:
    """Add entries; return a change for each."""
    added = list(bindings)
    if added:
        acls.create_acls(brokers, added)
    return [
        Change(cluster, "acl.create", row.pattern.name or "", after=words_of(row)) for row in added
    ]


def remove_entries(
    brokers: Brokers, filters: Iterable[AclBinding], *, cluster: str = ""
) -> list[Change]:
    """Remove the entries that filters match; return a change for each."""
    return [
        Change(cluster, "acl.delete", row.pattern.name or "", before=words_of(row))
        for row in acls.delete_acls(brokers, filters)
    ]


def alter_credentials(
    brokers: Brokers,
    upsertions: Sequence[scram.ScramUpsertion],
    deletions: Sequence[scram.ScramDeletion] = (),
    *,
    cluster: str = "",
) -> list[Change]:
    """Set passwords and delete mechanisms of users in one request; return a change for each."""
    scram.alter_user_scram_credentials(brokers, upsertions, deletions)
    changes = []
    for row in upsertions:
        mechanism, iterations = row.mechanism.mechanism_name, str(row.iterations)
        after = {"mechanism": mechanism, "iterations": iterations, "password": MASKED}
        changes.append(Change(cluster, "user.set-password", row.user, after=after))
    for deletion in deletions:
        before = {"mechanism": deletion.mechanism.mechanism_name}
        changes.append(Change(cluster, "user.delete-credential", deletion.user, before=before))
    return changes


def set_password(brokers: Brokers, row: scram.ScramUpsertion, *, cluster: str = "") -> Change:
    """Create a user or change its password; the cluster receives only the salted password."""
    (change,) = alter_credentials(brokers, [row], cluster=cluster)
    return change


def delete_credential(brokers: Brokers, row: scram.ScramDeletion, *, cluster: str = "") -> Change:
    """Delete one mechanism of a user; ApiError RESOURCE_NOT_FOUND if the user does not have it."""
    (change,) = alter_credentials(brokers, [], [row], cluster=cluster)
    return change


def alter_quota(
    brokers: Brokers,
    entity: Mapping[str, str | None],
    assign: Mapping[str, float],
    delete: Sequence[str] = (),
    *,
    known: Mapping[str, float] | None = None,
    cluster: str = "",
) -> Change:
    """Set and remove limits of an entity; ApiError INVALID_REQUEST for unknown names.

    `known` are the present limits, if the caller has read them.
    """
    before = known
    if before is None:
        rows = if_allowed(lambda: quotas.describe_client_quotas(brokers, entity, strict=True)) or []
        before = {name: value for row in rows for name, value in row.values.items()}
    quotas.alter_client_quotas(brokers, entity, assign, delete=delete)
    return Change(
        cluster,
        "quota.alter",
        entity_text(entity),
        before={name: str(before[name]) for name in (*assign, *delete) if name in before},
        after={name: str(limit) for name, limit in assign.items()},
    )


def entity_text(entity: Mapping[str, str | None]) -> str:
    """Return the parts of an entity as one text. Pure."""
    return ", ".join(
        f"{kind} {'(default)' if name is None else name}" for kind, name in sorted(entity.items())
    )


class CreatedToken(NamedTuple):
    """A new token with its secret, and the change, which does not have it."""

    token: DelegationToken
    change: Change


def create_token(
    brokers: Brokers,
    *,
    owner: tokens.Principal = "",
    renewers: Sequence[tokens.Principal] = (),
    max_lifetime_ms: int = tokens.BROKER_DEFAULT,
    cluster: str = "",
) -> CreatedToken:
    """Issue a delegation token, by default for the user of the connection."""
    token = tokens.create_delegation_token(
        brokers, owner=owner, renewers=renewers, max_lifetime_ms=max_lifetime_ms
    )
    after = {"owner": str(token.owner), "expiry_ms": str(token.expiry_ms), "hmac": MASKED}
    return CreatedToken(token, Change(cluster, "token.create", token.token_id, after=after))


def renew_token(
    brokers: Brokers, token_id: str, hmac: bytes, *, period_ms: int, cluster: str = ""
) -> Change:
    """Postpone the expiry of a token; `token_id` is for the change, empty if it is unknown."""
    expiry_ms = tokens.renew_delegation_token(brokers, hmac, period_ms=period_ms)
    return Change(cluster, "token.renew", token_id, after={"expiry_ms": str(expiry_ms)})


def expire_token(
    brokers: Brokers, token_id: str, hmac: bytes, *, period_ms: int, cluster: str = ""
) -> Change:
    """Let a token expire after a period, at once if it is negative."""
    expiry_ms = tokens.expire_delegation_token(brokers, hmac, period_ms=period_ms)
    action = "token.delete" if period_ms < 0 else "token.expire"
    return Change(cluster, action, token_id, after={"expiry_ms": str(expiry_ms)})
