"""The values of Kafka's client options: types, ranges and the sentences for others (ConfigDef).

Scripts check options as Apache Kafka's tools do, also those that have no meaning for librdkafka and
Ottla. The definitions follow ProducerConfig, ConsumerConfig and AdminClientConfig 4.3, in
their order: of several wrong values, the first one in this order is reported.

Not done: options whose values are classes or lists, and options of share groups.
"""

import math
import re
from collections.abc import Callable, Mapping

from ottla.base.errors import ConfigError
from ottla.client.config.choices import reset_age_ms
from ottla.client.config.names import Role

_Check = Callable[[str, str], None]
_INTEGER = re.compile(r"[+-]?[0-9]{1,99}")
_DOUBLE = re.compile(
    r"([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?"
)
_BITS = {"SHORT": 15, "INT": 31, "LONG": 63}
_GZIP_LEVELS = range(1, 10)
_GZIP_DEFAULT = -1


def check_options(role: Role, options: Mapping[str, str]) -> None:
    """Raise ConfigError, in the words of Kafka's ConfigDef, for the first wrong value of a client.

    It ignores unknown options, and other clients' options.
    """
    for name, check in _DEFINITIONS[role].items():
        if name in options:
            check(name, options[name])


def _invalid(name: str, value: object, reason: str) -> ConfigError:
    return ConfigError(f"Invalid value {value} for configuration {name}: {reason}")


def _parsed(text: str, kind: str) -> float | None:
    """Return the number in a text; None if it is none of this type of Java."""
    if kind == "DOUBLE":
        found = _DOUBLE.fullmatch(text)
        return None if found is None else float(found[1])
    if _INTEGER.fullmatch(text) is None:
        return None
    number, limit = int(text), 1 << _BITS[kind]
    return number if -limit <= number < limit else None


def _number(kind: str, least: float = -math.inf, most: float = math.inf) -> _Check:
    def check(name: str, text: str) -> None:
        number = _parsed(text.strip(), kind)
        if number is None:
            raise _invalid(name, text, f"Not a number of type {kind}")
        if number < least:
            raise _invalid(name, number, f"Value must be at least {least}")
        if number > most:
            raise _invalid(name, number, f"Value must be no more than {most}")

    return check


def _one_of(*words: str) -> _Check:
    def check(name: str, text: str) -> None:
        if text.strip() not in words:
            raise _invalid(name, text.strip(), f"String must be one of: {', '.join(words)}")

    return check


def _one_of_any_case(*words: str) -> _Check:
    def check(name: str, text: str) -> None:
        if text.strip().upper() not in words:
            reason = f"String must be one of (case insensitive): {', '.join(words)}"
            raise _invalid(name, text.strip(), reason)

    return check


def _boolean(name: str, text: str) -> None:
    if text.strip().lower() not in ("true", "false"):
        raise _invalid(name, text, "Expected value to be either true or false")


def _not_empty(name: str, text: str) -> None:
    if not text.strip():
        raise _invalid(name, "", "String must be non-empty")


def _gzip_level(name: str, text: str) -> None:
    _number("INT")(name, text)
    if int(text) != _GZIP_DEFAULT and int(text) not in _GZIP_LEVELS:
        raise _invalid(name, int(text), "Value must be between 1 and 9 or equal to -1")


def _reset(_: str, text: str) -> None:
    reset_age_ms(text.strip())


_INT, _LONG, _FRACTION = _number("INT"), _number("LONG"), _number("DOUBLE")
_NATURAL_INT, _NATURAL_LONG = _number("INT", 0), _number("LONG", 0)

_DNS_LOOKUP = {
    "client.dns.lookup": _one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
}
_BUFFERS = {
    "send.buffer.bytes": _number("INT", -1),
    "receive.buffer.bytes": _number("INT", -1),
}
_BACKOFFS = {
    "reconnect.backoff.ms": _NATURAL_LONG,
    "reconnect.backoff.max.ms": _NATURAL_LONG,
    "retry.backoff.ms": _NATURAL_LONG,
    "retry.backoff.max.ms": _NATURAL_LONG,
    "enable.metrics.push": _boolean,
}
_METRICS = {
    "metrics.sample.window.ms": _NATURAL_LONG,
    "metrics.num.samples": _number("INT", 1),
    "metrics.recording.level": _one_of("INFO", "DEBUG", "TRACE"),
}
_CONNECTIONS = {
    "socket.connection.setup.timeout.ms": _LONG,
    "socket.connection.setup.timeout.max.ms": _LONG,
    "connections.max.idle.ms": _LONG,
}
_PROTOCOL = {
    "security.protocol": _one_of_any_case("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT"),
}
_LOGIN = {
    "sasl.kerberos.ticket.renew.window.factor": _FRACTION,
    "sasl.kerberos.ticket.renew.jitter": _FRACTION,
    "sasl.kerberos.min.time.before.relogin": _LONG,
    "sasl.login.refresh.window.factor": _number("DOUBLE", 0.5, 1.0),
    "sasl.login.refresh.window.jitter": _number("DOUBLE", 0.0, 0.25),
    "sasl.login.refresh.min.period.seconds": _number("SHORT", 0, 900),
    "sasl.login.refresh.buffer.seconds": _number("SHORT", 0, 3600),
    "sasl.login.connect.timeout.ms": _INT,
    "sasl.login.read.timeout.ms": _INT,
    "sasl.login.retry.backoff.max.ms": _LONG,
    "sasl.login.retry.backoff.ms": _LONG,
    "sasl.oauthbearer.assertion.algorithm": _one_of_any_case("ES256", "RS256"),
    "sasl.oauthbearer.assertion.claim.exp.seconds": _number("INT", 0, 86400),
    "sasl.oauthbearer.assertion.claim.jti.include": _boolean,
    "sasl.oauthbearer.assertion.claim.nbf.seconds": _number("INT", 0, 3600),
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": _LONG,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": _LONG,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": _LONG,
    "sasl.oauthbearer.clock.skew.seconds": _INT,
    "sasl.oauthbearer.header.urlencode": _boolean,
}
_RECOVERY = {
    "metadata.recovery.strategy": _one_of_any_case("REBOOTSTRAP", "NONE"),
    "metadata.recovery.rebootstrap.trigger.ms": _NATURAL_LONG,
}
_DEFINITIONS: dict[Role, dict[str, _Check]] = {
    Role.PRODUCER: {
        **_DNS_LOOKUP,
        "buffer.memory": _NATURAL_LONG,
        "retries": _NATURAL_INT,
        "acks": _one_of("all", "-1", "0", "1"),
        "compression.type": _one_of("none", "gzip", "snappy", "lz4", "zstd"),
        "compression.gzip.level": _gzip_level,
        "compression.lz4.level": _number("INT", 1, 17),
        "compression.zstd.level": _number("INT", -131072, 22),
        "batch.size": _NATURAL_INT,
        "partitioner.adaptive.partitioning.enable": _boolean,
        "partitioner.availability.timeout.ms": _NATURAL_LONG,
        "partitioner.ignore.keys": _boolean,
        "linger.ms": _NATURAL_LONG,
        "delivery.timeout.ms": _NATURAL_INT,
        **_BUFFERS,
        "max.request.size": _NATURAL_INT,
        **_BACKOFFS,
        "max.block.ms": _NATURAL_LONG,
        "request.timeout.ms": _NATURAL_INT,
        "metadata.max.age.ms": _NATURAL_LONG,
        "metadata.max.idle.ms": _number("LONG", 5000),
        **_METRICS,
        "max.in.flight.requests.per.connection": _number("INT", 1),
        **_CONNECTIONS,
        **_PROTOCOL,
        **_LOGIN,
        "enable.idempotence": _boolean,
        "transaction.timeout.ms": _INT,
        "transactional.id": _not_empty,
        "transaction.two.phase.commit.enable": _boolean,
        **_RECOVERY,
    },
    Role.CONSUMER: {
        **_DNS_LOOKUP,
        "group.instance.id": _not_empty,
        "session.timeout.ms": _INT,
        "heartbeat.interval.ms": _INT,
        "metadata.max.age.ms": _NATURAL_LONG,
        "enable.auto.commit": _boolean,
        "auto.commit.interval.ms": _NATURAL_INT,
        "max.partition.fetch.bytes": _NATURAL_INT,
        **_BUFFERS,
        "fetch.min.bytes": _NATURAL_INT,
        "fetch.max.bytes": _NATURAL_INT,
        "fetch.max.wait.ms": _NATURAL_INT,
        **_BACKOFFS,
        "auto.offset.reset": _reset,
        "check.crcs": _boolean,
        **_METRICS,
        "request.timeout.ms": _NATURAL_INT,
        "default.api.timeout.ms": _NATURAL_INT,
        **_CONNECTIONS,
        "max.poll.records": _number("INT", 1),
        "max.poll.interval.ms": _number("INT", 1),
        "exclude.internal.topics": _boolean,
        "isolation.level": _one_of("read_committed", "read_uncommitted"),
        "allow.auto.create.topics": _boolean,
        "group.protocol": _one_of_any_case("CONSUMER", "CLASSIC"),
        **_PROTOCOL,
        **_LOGIN,
        **_RECOVERY,
    },
    Role.ADMIN: {
        "metadata.max.age.ms": _NATURAL_LONG,
        **_BUFFERS,
        **_BACKOFFS,
        "request.timeout.ms": _NATURAL_INT,
        **_CONNECTIONS,
        "retries": _NATURAL_INT,
        "default.api.timeout.ms": _NATURAL_INT,
        **_METRICS,
        **_DNS_LOOKUP,
        **_PROTOCOL,
        **_LOGIN,
        **_RECOVERY,
    },
}
