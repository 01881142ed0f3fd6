"""Quotas of users, clients and addresses (DescribeClientQuotas, AlterClientQuotas; KIP-546,
KIP-612).

An entity maps its types ("user", "client-id", "ip") to names; None is the default of a type.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.client.admin.answers import check
from ottla.client.brokers import Brokers
from ottla.wire.messages import alter_client_quotas as altering
from ottla.wire.messages import describe_client_quotas as describing

Entity = Mapping[str, str | None]
TYPES = ("user", "client-id", "ip")
_EXACT, _DEFAULT, _ANY = 0, 1, 2


class Quota(NamedTuple):
    """The quotas of an entity: bytes per second, percent of a thread, or operations per second."""

    entity: dict[str, str | None]
    values: dict[str, float]


def describe_client_quotas(
    brokers: Brokers,
    entity: Entity | None = None,
    *,
    any_of: Sequence[str] = (),
    strict: bool = False,
) -> list[Quota]:
    """Return the quotas of entities that match.

    `entity` has the names to match exactly (None: the default), `any_of` types with any name.
    Without both, all quotas are returned. With `strict`, entities of further types do not match.
    """
    components = [
        describing.ComponentData(
            entity_type=kind, match_type=_DEFAULT if name is None else _EXACT, match=name
        )
        for kind, name in (entity or {}).items()
    ]
    components += [
        describing.ComponentData(entity_type=kind, match_type=_ANY, match=None) for kind in any_of
    ]
    request = describing.DescribeClientQuotasRequest(components=components, strict=strict)

    def attempt() -> list[Quota]:
        response = brokers.ask(request, describing.DescribeClientQuotasResponse)
        check(response.error_code, response.error_message)
        return [
            Quota(
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
    """Set quotas of an entity such as {"client-id": "loader"} and remove others, all or nothing.

    ApiError INVALID_REQUEST.
    """
    operations = [
        altering.OpData(key=key, value=value, remove=False) for key, value in (assign or {}).items()
    ]
    operations += [altering.OpData(key=key, value=0.0, remove=True) for key in delete]
    request = altering.AlterClientQuotasRequest(
        entries=[
            altering.AlterClientQuotasRequestEntryData(
                entity=[
                    altering.EntityData(entity_type=kind, entity_name=name)
                    for kind, name in entity.items()
                ],
                ops=operations,
            )
        ],
        validate_only=False,
    )

    def attempt() -> None:
        response = brokers.ask_controller(request, altering.AlterClientQuotasResponse)
        for row in response.entries:
            check(row.error_code, row.error_message)

    brokers.retry(attempt)
