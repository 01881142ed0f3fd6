"""The methods of AdminClient for quotas, features, and resources with a configuration."""

from collections.abc import Mapping, Sequence

from ottla.client.admin import configs, features, quotas
from ottla.client.admin.methods.connected import Connected


class SettingsMethods(Connected):
    """Quotas, features, and resources with a configuration."""

    def describe_client_quotas(
        self,
        entity: quotas.Entity | None = None,
        *,
        any_of: Sequence[str] = (),
        strict: bool = False,
    ) -> list[quotas.Quota]:
        """Return the quotas of matching entities, by default all; None is the default of a type."""
        return quotas.describe_quotas(self._brokers, entity, any_of=any_of, strict=strict)

    def alter_client_quotas(
        self,
        entity: quotas.Entity,
        assign: Mapping[str, float] | None = None,
        *,
        delete: Sequence[str] = (),
    ) -> None:
        """Set quotas of an entity such as {"client-id": "loader"}, and remove others."""
        quotas.alter_quotas(self._brokers, entity, assign, delete=delete)

    def describe_features(self, *, node_id: int | None = None) -> list[features.Feature]:
        """Return the features of the cluster with their levels, as any broker or one knows them."""
        return [*features.read_features(self._brokers, node_id).features]

    def update_features(
        self,
        levels: Mapping[str, int],
        *,
        upgrade_type: features.UpgradeType = features.UpgradeType.UPGRADE,
        validate_only: bool = False,
    ) -> None:
        """Set the levels of features, all or none."""
        features.update_features(
            self._brokers, levels, upgrade_type=upgrade_type, validate_only=validate_only
        )

    def list_config_resources(
        self, types: Sequence[configs.ResourceType] = ()
    ) -> list[configs.Resource]:
        """Return the resources that can have a configuration, of these types or of all."""
        return configs.list_config_resources(self._brokers, types)
