"""Java's client properties as options of librdkafka, for scripts, commands and the console.

Not done: properties of Java plug-ins (interceptors, partitioners, metric reporters) and of key
stores (JKS), and `auto.offset.reset=by_duration` of a group, are refused by name.
"""

from collections.abc import Mapping

from ottla.base.errors import ConfigError
from ottla.client.config.choices import check_value, reset_age_ms
from ottla.client.config.names import IGNORED
from ottla.client.security.options import (
    HOST_CHECK,
    LOGIN_OPTIONS,
    NO_HOST_CHECK,
    check_stores,
    librdkafka_login,
    pem_key_store,
)
from ottla.client.security.tls_policy import POLICY_OPTIONS, librdkafka_policy

# Without a meaning for librdkafka, or with another default that suits it better.
_IGNORED = frozenset({
    "key.serializer", "value.serializer", "key.deserializer", "value.deserializer",
    "max.block.ms", "max.poll.records", "metadata.max.idle.ms", "reconnect.backoff.max.ms",
    "partitioner.ignore.keys", "partitioner.adaptive.partitioning.enable", "client.dns.lookup",
    "default.api.timeout.ms", "exclude.internal.topics", "auto.include.jmx.reporter",
    "enable.metrics.push", "delivery.timeout.ms", "bootstrap.servers",
})  # fmt: skip
_RENAMED = {
    "request.timeout.ms": "socket.timeout.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "sasl.mechanism": "sasl.mechanisms",
    "max.request.size": "message.max.bytes",
    "connections.max.idle.ms": "connections.max.idle.ms",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.partition.fetch.bytes": "max.partition.fetch.bytes",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_REFUSED = ("interceptor.classes", "partitioner.class", "metric.reporters", "ssl.keystore.location")
_ASSIGNORS = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "CooperativeStickyAssignor": "cooperative-sticky",
    "StickyAssignor": "sticky",
}


def librdkafka_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """Translate Java's properties; ConfigError names one that librdkafka cannot fulfil."""
    check_stores(properties)
    settings = librdkafka_policy(properties)
    pem = pem_key_store(properties)
    if pem is not None:
        settings |= {"ssl.certificate.location": pem, "ssl.key.location": pem}
    for name, value in properties.items():
        check_value(name, value)
        if name in POLICY_OPTIONS or (pem is not None and name == "ssl.keystore.location"):
            continue
        if name in _REFUSED:
            raise ConfigError(f"{name} names Java classes or files: this script cannot use them")
        if name == "auto.offset.reset":
            settings[name] = _reset(value)
        elif name in LOGIN_OPTIONS:
            settings |= librdkafka_login(name, value)
        elif name == HOST_CHECK:
            settings[name] = value or NO_HOST_CHECK
        elif name == "buffer.memory":
            settings["queue.buffering.max.kbytes"] = str(max(int(value) // 1024, 1))
        elif name == "partition.assignment.strategy":
            settings[name] = _assignors(value)
        elif name == "ssl.truststore.location":
            settings["ssl.ca.location"] = value
        elif name == "retries" or name not in _IGNORED | IGNORED:
            settings[_RENAMED.get(name, name)] = value
    return settings


def _reset(value: str) -> str:
    if reset_age_ms(value) is not None:
        raise ConfigError(
            f"auto.offset.reset={value} is not supported for the group of a script: reset its "
            "offsets with kafka-consumer-groups --reset-offsets --by-duration first"
        )
    return "error" if value == "none" else value


def _assignors(value: str) -> str:
    names = [part.strip().rpartition(".")[2] for part in value.split(",")]
    unknown = [name for name in names if name not in _ASSIGNORS]
    if unknown:
        raise ConfigError(
            f"partition.assignment.strategy names {unknown[0]!r}; known: {', '.join(_ASSIGNORS)}"
        )
    return ",".join(_ASSIGNORS[name] for name in names)
