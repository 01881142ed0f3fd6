"""The methods of AdminClient for access control lists, users and delegation tokens."""

from collections.abc import Iterable, Sequence

from ottla.client.admin import acls, scram
from ottla.client.admin.apache import delegation_tokens
from ottla.client.admin.methods.connected import Connected


class AccessMethods(Connected):
    """Access control lists, SCRAM users, tokens; Unsupported if the brokers do not serve them."""

    def describe_acls(self, matching: acls.AclBinding = acls.ANY) -> list[acls.AclBinding]:
        """Return the ACLs that match a filter, by default all.

        ApiError SECURITY_DISABLED if the brokers have no authorizer.
        """
        return acls.describe_acls(self._brokers, matching)

    def create_acls(self, bindings: Iterable[acls.AclBinding]) -> None:
        """Add ACLs; ApiError of the first that was rejected, the others are added."""
        acls.create_acls(self._brokers, bindings)

    def delete_acls(self, filters: Iterable[acls.AclBinding]) -> list[acls.AclBinding]:
        """Delete the ACLs that match at least one of the filters, and return them."""
        return acls.delete_acls(self._brokers, filters)

    def describe_user_scram_credentials(
        self, users: Sequence[str] | None = None
    ) -> dict[str, tuple[scram.ScramCredential, ...]]:
        """Return the credentials of these users, or of all; users without any are left out."""
        return scram.describe_user_scram_credentials(self._brokers, users)

    def alter_user_scram_credentials(
        self,
        upsertions: Iterable[scram.ScramUpsertion] = (),
        deletions: Iterable[scram.ScramDeletion] = (),
    ) -> None:
        """Create, replace and delete credentials: one change of each user."""
        scram.alter_user_scram_credentials(self._brokers, upsertions, deletions)

    def create_delegation_token(
        self,
        *,
        owner: str = "",
        renewers: Iterable[str] = (),
        max_lifetime_ms: int = delegation_tokens.BROKER_DEFAULT,
    ) -> delegation_tokens.DelegationToken:
        """Issue a token for the user of this connection, or for an owner such as "User:ann".

        ApiError DELEGATION_TOKEN_AUTH_DISABLED, DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
        """
        return delegation_tokens.create_delegation_token(
            self._brokers, owner=owner, renewers=renewers, max_lifetime_ms=max_lifetime_ms
        )

    def renew_delegation_token(
        self, hmac: bytes, *, period_ms: int = delegation_tokens.BROKER_DEFAULT
    ) -> int:
        """Let a token expire `period_ms` from now; return the time, in ms since the epoch."""
        return delegation_tokens.renew_delegation_token(self._brokers, hmac, period_ms=period_ms)

    def expire_delegation_token(self, hmac: bytes, *, period_ms: int = -1) -> int:
        """Let a token expire `period_ms` from now, by default at once; return the time."""
        return delegation_tokens.expire_delegation_token(self._brokers, hmac, period_ms=period_ms)

    def describe_delegation_tokens(
        self, principals: Iterable[str] | None = None
    ) -> list[delegation_tokens.DelegationToken]:
        """Return the tokens that these principals own or may renew, or all that the user may
        describe.
        """
        return delegation_tokens.describe_delegation_tokens(self._brokers, principals)
