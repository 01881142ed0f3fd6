"""Client quotas: describe and alter (DescribeClientQuotas, AlterClientQuotas; KIP-546).

An entity is a mapping from its types, "user", "client-id" or "ip", to names; a name None is the
default of its type.
"""

from collections.abc import Mapping, Sequence

from ottla.client.admin.answers import check
from ottla.client.brokers import Brokers
from ottla.wire.messages import alter_client_quotas as altering
from ottla.wire.messages import describe_client_quotas as describing

Entity = Mapping[str, str | None]
_EXACT, _DEFAULT, _ANY = 0, 1, 2


def describe_client_quotas(
    brokers: Brokers, entity: Entity | None = None, *, types: Sequence[str] = ()
) -> list[tuple[dict[str, str | None], dict[str, float]]]:
    """Return the quotas of one entity, of all entities of these types, or all quotas."""
    components = [
        describing.ComponentData(
            entity_type=kind, match_type=_DEFAULT if name is None else _EXACT, match=name
        )
        for kind, name in (entity or {}).items()
    ]
    components += [
        describing.ComponentData(entity_type=kind, match_type=_ANY, match=None) for kind in types
    ]
    request = describing.DescribeClientQuotasRequest(components=components, strict=bool(components))

    def attempt() -> list[tuple[dict[str, str | None], dict[str, float]]]:
        response = brokers.ask(request, describing.DescribeClientQuotasResponse)
        check(response.error_code, response.error_message)
        return [
            (
                {part.entity_type: part.entity_name for part in entry.entity},
                {row.key: row.value for row in entry.values},
            )
            for entry in response.entries or []
        ]

    return brokers.retry(attempt)


def alter_client_quotas(
    brokers: Brokers,
    entity: Entity,
    assign: Mapping[str, float] | None = None,
    *,
    delete: Sequence[str] = (),
) -> None:
    """Set and remove quotas of one entity, like producer_byte_rate; ApiError if one is invalid."""
    operations = [altering.OpData(key=key, value=value) for key, value in (assign or {}).items()]
    operations += [altering.OpData(key=key, remove=True) for key in delete]
    parts = [
        altering.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()
    ]
    entry = altering.AlterClientQuotasRequestEntryData(entity=parts, ops=operations)
    request = altering.AlterClientQuotasRequest(entries=[entry])

    def attempt() -> None:
        response = brokers.ask_controller(request, altering.AlterClientQuotasResponse)
        for row in response.entries:
            check(row.error_code, row.error_message)

    brokers.retry(attempt)
