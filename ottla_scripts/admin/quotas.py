"""`kafka-configs` for users, clients and addresses: quotas (KIP-546) and SCRAM credentials."""

from collections.abc import Mapping, Sequence

from ottla.base.errors import ConfigError
from ottla.client.admin.quotas import Quota, describe_client_quotas
from ottla.client.brokers import Brokers, Controllers, unsupported_by_controllers
from ottla.operations.access.changes import alter_quota
from ottla_scripts.access import scram_users
from ottla_scripts.admin.entities import Entities
from ottla_scripts.flags import Options
from ottla_scripts.printing import as_json, java_double, out

_WIRE = {"users": "user", "clients": "client-id", "ips": "ip"}
_ENTITY_NAMES = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
_CLIENT_KEYS = frozenset({
    "producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate",
})  # fmt: skip
_KEYS = {
    "users": _CLIENT_KEYS,
    "clients": _CLIENT_KEYS,
    "ips": frozenset({"connection_creation_rate"}),
}


def describe(brokers: Brokers, entities: Entities, options: Options) -> None:
    """Print the quotas and SCRAM credentials of an entity, or of all of its types."""
    rows: list[dict[str, object]] = []
    for entity, values in _read(brokers, entities):
        names = [
            f"{_ENTITY_NAMES[kind]} '{entity[kind]}'"
            if entity[kind] is not None
            else f"the default {_ENTITY_NAMES[kind]}"
            for kind in ("user", "client-id", "ip")
            if kind in entity
        ]
        rows.append({"entity": entity, "quotas": values})
        if not options.is_json:
            listed = ", ".join(
                f"{key}={java_double(value)}" for key, value in sorted(values.items())
            )
            out(f"Quota configs for {', '.join(names)} are {listed}")
    credentials: scram_users.Iterations = {}
    if entities.types == ["users"] and "" not in entities.names:
        credentials = scram_users.describe(brokers, entities.names)
    if options.is_json:
        scram = [{"entity": {"user": user}, "scram": found} for user, found in credentials.items()]
        as_json([*rows, *scram])
    else:
        scram_users.print_described(credentials)


def alter(
    brokers: Brokers, entities: Entities, added: Mapping[str, str], deleted: Sequence[str]
) -> None:
    """Set and remove quotas, or SCRAM credentials, of one entity."""
    _check(entities, added, deleted)
    if isinstance(brokers, Controllers):
        raise unsupported_by_controllers()
    if scram_users.MECHANISMS & {*added, *deleted}:
        scram_users.alter(brokers, entities.names[0], added, deleted)
        return
    known = next((values for _, values in _read(brokers, entities)), {})
    missing = [key for key in deleted if key not in known]
    if missing:
        raise ConfigError(f"Invalid config(s): {','.join(missing)}")
    entity = {
        _WIRE[kind]: name or None for kind, name in zip(entities.types, entities.names, strict=True)
    }
    numbers = {key: _number(key, text) for key, text in added.items()}
    alter_quota(brokers, entity, numbers, deleted, known=known)


def _check(entities: Entities, added: Mapping[str, str], deleted: Sequence[str]) -> None:
    kind = "clients" if len(entities.types) == 2 else entities.types[0]
    allowed = _KEYS[kind] | (scram_users.MECHANISMS if kind == "users" else frozenset())
    noun = {"clients": "quota", "users": "quota and SCRAM credential", "ips": "connection quota"}[
        kind
    ]
    # The names of Scala's collections are part of Kafka's sentences.
    for verb, collection, names in (("added", "Set", added), ("deleted", "ArrayBuffer", deleted)):
        unknown = [name for name in names if name not in allowed]
        if unknown:
            listed = f"{collection}({', '.join(unknown)})" if kind != "ips" else ",".join(unknown)
            raise ConfigError(
                f"Only {noun} configs can be {verb} for '{kind}' using --bootstrap-server. "
                f"Unexpected config names: {listed}"
            )
    if kind == "users":
        _check_user(entities, {*added, *deleted})


def _check_user(entities: Entities, names: set[str]) -> None:
    if not names & scram_users.MECHANISMS:
        return
    if "" in entities.names:
        raise ConfigError(
            "The use of --entity-default or --user-defaults is not allowed with User SCRAM "
            "Credentials using --bootstrap-server."
        )
    if names - scram_users.MECHANISMS:
        raise ConfigError(
            "Cannot alter both quota and SCRAM credential configs simultaneously for 'users' using "
            "--bootstrap-server."
        )


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"Cannot parse quota configuration value for {key}: {text}") from None


def _read(brokers: Brokers, entities: Entities) -> list[Quota]:
    count = len(entities.names)
    named = {
        _WIRE[kind]: name or None
        for kind, name in zip(entities.types, entities.names, strict=False)
    }
    return describe_client_quotas(
        brokers, named, any_of=[_WIRE[kind] for kind in entities.types[count:]], strict=True
    )
