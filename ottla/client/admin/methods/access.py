"""The methods of AdminClient for access control lists and users."""

from collections.abc import Iterable, Sequence

from ottla.client.admin import acls, scram
from ottla.client.admin.methods.connected import Connected


class AccessMethods(Connected):
    """Access control lists and SCRAM users; Unsupported if the brokers do not serve them."""

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
