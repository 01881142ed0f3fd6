"""The option tables of topics and brokers, and how broker options set the defaults of topic
options.

Parsing, DescribeConfigs, docs/options.md and the checks of CreateTopics and IncrementalAlterConfigs
all read these rows. Pure: without files and tree; `server.config.store` stores the settings.
Follows ServerTopicConfigSynonyms and KIP-226's order of sources.
"""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.base.errors import ConfigError
from ottla.base.loading import deferred_module
from ottla.base.options import Snapshot, Table, is_port
from ottla.cluster.options import (
    authorization_options,
    broker_options,
    group_options,
    security_options,
    topic_options,
)
from ottla.cluster.options.option_rows import INERT
from ottla.cluster.options.security.exposure import weaknesses
from ottla.cluster.options.security.listener_values import BETWEEN_BROKERS, PREFIX
from ottla.security.broker_proof import MECHANISM as BY_SECRET

if TYPE_CHECKING:
    from ottla.cluster.options.security import broker_login
    from ottla.cluster.options.security import names as security_names
else:
    # Few brokers log in with SCRAM.
    broker_login = deferred_module("ottla.cluster.options.security.broker_login")
    # Only a configuration with other names than the table's needs it.
    security_names = deferred_module("ottla.cluster.options.security.names")

TOPIC_OPTIONS = Table(topic_options.ROWS)
BROKER_OPTIONS = Table(broker_options.ROWS)

PRODUCER_EXPIRATION = "producer.id.expiration.ms"
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def _same(value: Any) -> Any:
    return value


def _milliseconds_per(unit: int) -> Callable[[Any], Any]:
    # A limit below zero (-1: no limit) is not converted.
    return lambda value: value * unit if value >= 0 else -1


class Synonym(NamedTuple):
    """A broker option that can set the value of a topic option, and how to convert it."""

    name: str
    convert: Callable[[Any], Any] = _same


_HOURS = _milliseconds_per(3_600_000)
_MINUTES = _milliseconds_per(60_000)

# If Kafka has several names for one setting, the first that is set applies.
_SYNONYMS = {
    "log.retention.ms": (
        Synonym("log.retention.ms"),
        Synonym("log.retention.minutes", _MINUTES),
        Synonym("log.retention.hours", _HOURS),
    ),
    "log.roll.ms": (Synonym("log.roll.ms"), Synonym("log.roll.hours", _HOURS)),
    "log.roll.jitter.ms": (
        Synonym("log.roll.jitter.ms"),
        Synonym("log.roll.jitter.hours", _HOURS),
    ),
    "log.flush.interval.ms": (
        Synonym("log.flush.interval.ms"),
        Synonym("log.flush.scheduler.interval.ms"),
    ),
}


def broker_synonyms(name: str) -> tuple[Synonym, ...]:
    """Return the broker options that can set the value of broker option `name`, itself first."""
    for synonyms in _SYNONYMS.values():
        for index, synonym in enumerate(synonyms):
            if synonym.name == name:
                return synonyms[index:]
    return (Synonym(name),)


def topic_synonyms(name: str) -> tuple[Synonym, ...]:
    """Return the broker options that set the default of topic option `name`, first choice first."""
    fallback = TOPIC_OPTIONS.row(name).fallback
    if fallback is None:
        return ()
    return _SYNONYMS.get(fallback, (Synonym(fallback),))


def topic_default(broker: Snapshot, name: str) -> Any:
    """Return the value of topic option `name` on a broker if the topic does not set it."""
    synonyms = topic_synonyms(name)
    for synonym in synonyms:
        if broker[synonym.name] is not None:
            return synonym.convert(broker[synonym.name])
    return TOPIC_OPTIONS.row(name).default


def topic_snapshot(broker: Snapshot, overrides: Mapping[str, str]) -> Snapshot:
    """Return the options of a topic: its own settings, else the broker's, else the defaults.

    Raises ConfigError for a setting that is unknown or invalid.
    """
    values = {name: topic_default(broker, name) for name in TOPIC_OPTIONS.rows}
    values.update(TOPIC_OPTIONS.parse(overrides).explicit)
    # A topic cannot set it, but its logs use it.
    values[PRODUCER_EXPIRATION] = broker[PRODUCER_EXPIRATION]
    return Snapshot(TOPIC_OPTIONS, values)


def check_topic_settings(broker: Snapshot, overrides: Mapping[str, str]) -> None:
    """Raise ConfigError if these settings are not valid for a topic, alone or together."""
    values = topic_snapshot(broker, overrides)
    _check_lags(values["min.compaction.lag.ms"], values["max.compaction.lag.ms"])


def _check_lags(least: int, most: int) -> None:
    if least > most:
        raise ConfigError(
            f"Invalid value {least} for configuration min.compaction.lag.ms: "
            f"it must not be above max.compaction.lag.ms, which is {most}"
        )


class Listener(NamedTuple):
    """One entry of `listeners`: its name, its security protocol, host ("" for all) and port."""

    name: str
    protocol: str
    host: str
    port: int


def parse_listeners(broker: Snapshot, option: str = "listeners") -> list[Listener]:
    """Return the listeners in an option; raise ConfigError, with the reason, if one is invalid."""
    protocols = _protocols(broker)
    return [_parse_listener(text, option, protocols) for text in broker.strings(option)]


def _protocols(broker: Snapshot) -> dict[str, str]:
    """Return the protocols of listeners by their names.

    By default the listeners of a KRaft node's controller have no security, unless one is named
    after TLS or SASL, as in Kafka.
    """
    option = "listener.security.protocol.map"
    protocols = _protocol_map(broker.text(option))
    if option in broker.explicit or not broker["process.roles"]:
        return protocols
    controllers = [name.upper() for name in broker.strings("controller.listener.names")]
    names = [text.partition("://")[0].strip().upper() for text in broker.strings("listeners")]
    if any(name in SECURITY_PROTOCOLS and name != "PLAINTEXT" for name in controllers + names):
        return protocols
    return dict.fromkeys(controllers, "PLAINTEXT") | protocols


def _protocol_map(text: str) -> dict[str, str]:
    protocols = dict.fromkeys(SECURITY_PROTOCOLS, "")
    protocols = {name: name for name in protocols}
    for mapping in filter(None, (part.strip() for part in text.split(","))):
        name, _, protocol = mapping.partition(":")
        if protocol.upper() not in SECURITY_PROTOCOLS:
            raise BROKER_OPTIONS.row("listener.security.protocol.map").refusal(
                text,
                f"{mapping!r} is not name:protocol, with one of {', '.join(SECURITY_PROTOCOLS)}",
            )
        protocols[name.upper()] = protocol.upper()
    return protocols


def _parse_listener(text: str, option: str, protocols: Mapping[str, str]) -> Listener:
    refusal = BROKER_OPTIONS.row(option).refusal
    scheme, scheme_end, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    name = scheme.upper()
    if not (scheme_end and colon and is_port(port)):
        raise refusal(text, "it must look like PLAINTEXT://host:port")
    if name not in protocols:
        raise refusal(text, f"listener.security.protocol.map names no protocol for {scheme}")
    return Listener(name, protocols[name], host.strip("[]"), int(port))


class BrokerSettings(NamedTuple):
    """A checked broker configuration; `warnings` are sentences for the log or the terminal."""

    snapshot: Snapshot
    warnings: list[str]


def parse_broker_settings(settings: Mapping[str, str]) -> BrokerSettings:
    """Check a broker's configuration; raise ConfigError if it is invalid.

    As in Kafka, an unknown name is a warning (plug-ins have their own options), not an error; but
    not the name of an option of security.
    """
    if not settings.keys() <= BROKER_OPTIONS.rows.keys():
        settings = security_names.canonical(settings)
    known_settings = {name: text for name, text in settings.items() if name in BROKER_OPTIONS.rows}
    snapshot = BROKER_OPTIONS.parse(known_settings)
    _refuse_security_options(settings.keys() - known_settings.keys(), snapshot)
    prefixed = {name: text for name, text in settings.items() if name.startswith(PREFIX)}
    snapshot = Snapshot(BROKER_OPTIONS, {**_with_identity(snapshot).explicit, **prefixed})
    _check_together(snapshot)
    ignored = [
        f"Configuration {name} has no effect: {BROKER_OPTIONS.row(name).doc}"
        for name in known_settings
        if BROKER_OPTIONS.row(name).doc.startswith(INERT)
    ]
    return BrokerSettings(
        snapshot, _security_warnings(snapshot) + unknown_names(settings) + ignored
    )


def _security_warnings(broker: Snapshot) -> list[str]:
    """Return what an administrator should know at each start."""
    listener = inter_broker(broker)
    tls = security_options.security_of(broker, listener).tls
    if tls is None or tls.checks_host:
        return []
    return [
        f"ssl.endpoint.identification.algorithm of the listener {listener.name} is empty: every owner "
        "of a certificate that the trust store has signed can pretend to be another broker. Set https, "
        "and give each broker a certificate for its host name"
    ]


def refuse_without_effect(broker: Snapshot) -> None:
    """Raise ConfigError for an option of a listener that does not exist or cannot have it."""
    _refuse_security_options([name for name in broker.explicit if name.startswith(PREFIX)], broker)


def _refuse_security_options(names: Collection[str], broker: Snapshot) -> None:
    """Raise ConfigError for an option of security that would have no effect on a broker."""
    if not names:
        return
    listeners = [listener.name for listener in parse_listeners(broker)]
    security_names.refuse(
        sorted(names), BROKER_OPTIONS.rows, listeners, security_options.is_listener_option
    )


def exposure_warnings(broker: Snapshot) -> list[str]:
    """Return why the listeners of a broker that starts are not secure.

    Raises ConfigError unless allow.insecure.listeners permits that.
    """
    sentences = [
        sentence
        for listener in parse_listeners(broker)
        for sentence in weaknesses(listener, security_options.security_of(broker, listener))
    ]
    if login_of_brokers(broker) is not None and authorization_options.rules_of(broker) is None:
        sentences.append(
            f"{BETWEEN_BROKERS} needs an authorizer (authorizer.class.name): without it, each client "
            "may set the password of the brokers' user, and pretend to be a broker"
        )
    if sentences and not broker.boolean("allow.insecure.listeners"):
        first = sentences[0]
        raise ConfigError(
            f"{first[0].upper()}{first[1:]}. See docs/security.md for TLS and SASL, listen on 127.0.0.1, "
            "or set allow.insecure.listeners=true if this is intended."
        )
    return [f"{sentence} (allow.insecure.listeners)" for sentence in sentences]


def unknown_names(settings: Mapping[str, str]) -> list[str]:
    """Return a sentence for each name that is not a broker option, with the most similar one.

    Options of security are errors instead (`parse_broker_settings`).
    """
    return [
        _unknown(name)
        for name in settings
        if name not in BROKER_OPTIONS.rows
        and not security_names.is_security_option(name, BROKER_OPTIONS.rows)
    ]


def _unknown(name: str) -> str:
    suggestion = security_names.nearest(name, BROKER_OPTIONS.rows)
    hint = f"; did you mean {suggestion}?" if suggestion else ""
    return f"Unknown configuration {name} is ignored{hint}"


def refuse_unknown_names(settings: Mapping[str, str]) -> None:
    """Raise ConfigError for a name that is not a broker option; for settings that a user typed.

    Names of options of single listeners are checked with the listeners (`parse_broker_settings`).
    """
    for typed in [name for name in settings if name not in BROKER_OPTIONS.rows]:
        name = security_names.canonical_name(typed)
        if name.startswith(PREFIX):
            continue
        if security_names.is_security_option(name, BROKER_OPTIONS.rows):
            raise security_names.refusal(name, BROKER_OPTIONS.rows)
        suggestion = security_names.nearest(name, BROKER_OPTIONS.rows)
        hint = (
            f"did you mean {suggestion}?" if suggestion else "see docs/options.md for all of them"
        )
        raise ConfigError(f"There is no broker option {name}: {hint}")


def _with_identity(snapshot: Snapshot) -> Snapshot:
    """Set node.id and broker.id to the same value, and log.dirs to log.dir if it is not set."""
    values = dict(snapshot.explicit)
    node_id, broker_id = values.get("node.id"), values.get("broker.id", -1)
    if node_id is not None and broker_id not in (-1, node_id):
        raise ConfigError(
            f"node.id is {node_id} but broker.id is {broker_id}: set only node.id, or both alike"
        )
    if node_id is None and broker_id >= 0:
        values["node.id"] = broker_id
    values["broker.id"] = values.get("node.id", snapshot["node.id"])
    if not snapshot["log.dirs"]:
        values["log.dirs"] = snapshot["log.dir"]
    return Snapshot(BROKER_OPTIONS, values)


def check_connections(broker: Snapshot) -> None:
    """Raise ConfigError if the limits of connections refuse every client."""
    if broker["max.connections.per.ip"] == 0 and not broker["max.connections.per.ip.overrides"]:
        raise ConfigError(
            "Invalid value 0 for configuration max.connections.per.ip: every connection would be "
            "refused. Name hosts in max.connections.per.ip.overrides, or set at least 1"
        )


def _check_together(snapshot: Snapshot) -> None:
    """Check values that depend on each other, which a single row cannot check."""
    _check_lags(
        snapshot["log.cleaner.min.compaction.lag.ms"], snapshot["log.cleaner.max.compaction.lag.ms"]
    )
    check_connections(snapshot)
    group_options.check_broker(snapshot)
    authorization_options.rules_of(snapshot)
    listeners = parse_listeners(snapshot)
    names = [listener.name for listener in listeners]
    for listener in listeners:
        security_options.security_of(snapshot, listener)
    security_options.refuse_unused(snapshot, [listener.protocol for listener in listeners])
    _check_inter_broker(snapshot)
    for listener in parse_listeners(snapshot, "advertised.listeners"):
        if listener.name not in names:
            raise ConfigError(
                f"Invalid value {listener.name} for configuration advertised.listeners: "
                f"listeners has no listener with this name"
            )
    budget, largest = snapshot["queued.max.request.bytes"], snapshot["socket.request.max.bytes"]
    if 0 < budget < largest:
        raise ConfigError(
            f"Invalid value {budget} for configuration queued.max.request.bytes: "
            f"it must not be below socket.request.max.bytes, which is {largest}"
        )


def inter_broker_listener(options: Snapshot) -> str | None:
    """Return the name of the listener on which brokers reach each other; None for the first one."""
    name = options["inter.broker.listener.name"]
    found = name or options.explicit.get("security.inter.broker.protocol")
    return None if found is None else str(found).upper()


def inter_broker(options: Snapshot) -> Listener:
    """Return the listener on which brokers reach each other; ConfigError if it is not configured."""
    listeners = parse_listeners(options)
    name = inter_broker_listener(options)
    chosen = [listener for listener in listeners if name in (None, listener.name)]
    if chosen:
        return chosen[0]
    is_named = options["inter.broker.listener.name"] is not None
    option = "inter.broker.listener.name" if is_named else "security.inter.broker.protocol"
    names = ", ".join(listener.name for listener in listeners)
    raise ConfigError(
        f"Invalid value {name} for configuration {option}: listeners has no listener with this "
        f"name; set inter.broker.listener.name to one of {names}"
    )


def broker_listeners(options: Snapshot) -> frozenset[str]:
    """Return the names of the listeners on which other brokers are accepted; ConfigError if one
    does not exist.
    """
    names = {listener.name for listener in parse_listeners(options)}
    others = [name.upper() for name in options.strings("inter.broker.accepted.listeners")]
    for name in others:
        if name not in names:
            raise ConfigError(
                f"Invalid value {name} for configuration inter.broker.accepted.listeners: listeners has "
                f"no listener with this name; name one of {', '.join(sorted(names))}"
            )
    return frozenset({inter_broker(options).name, *others})


def login_of_brokers(options: Snapshot) -> "broker_login.BrokerLogin | None":
    """Return the user of SCRAM as which brokers log in to each other; None if they use the secret.

    Raises ConfigError if an option is wrong or missing.
    """
    if options.text("sasl.mechanism.inter.broker.protocol") == BY_SECRET:
        return None
    chosen = inter_broker(options)
    security = security_options.security_of(options, chosen)
    return broker_login.login_of(options, chosen, security.mechanisms, security.session_ms)


def _check_inter_broker(options: Snapshot) -> None:
    chosen = inter_broker(options)
    broker_listeners(options)
    if login_of_brokers(options) is not None:
        return
    is_proven = options.text("inter.broker.authentication") == "secret"
    if chosen.protocol.startswith("SASL") and not is_proven:
        raise ConfigError(
            f"The listener {chosen.name} is for brokers and has SASL, but with "
            "inter.broker.authentication=none brokers do not log in: set "
            f"{BETWEEN_BROKERS}=SCRAM-SHA-512 in its place, or use a listener without SASL"
        )
