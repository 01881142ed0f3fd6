"""Java class names in configuration files, and what they mean here.

Only the classes in these tables are known. Any other dotted path in a file is refused: a file of
settings must not choose the code that runs. In code, pass the object itself.
"""

from typing import Any

from ottla.base.errors import ConfigError
from ottla.client.config.choices import has_librdkafka
from ottla.client.serdes.named import Serdes
from ottla.client.serdes.serde import Serde

_SERIALIZATION = "org.apache.kafka.common.serialization."
_SERDES: dict[str, Serde[Any]] = {
    "String": Serdes.string(),
    "ByteArray": Serdes.bytes(),
    "ByteBuffer": Serdes.bytes(),
    "Bytes": Serdes.bytes(),
    "Integer": Serdes.integer(),
    "Long": Serdes.long(),
    "Short": Serdes.short(),
    "Float": Serdes.float(),
    "Double": Serdes.double(),
    "Boolean": Serdes.boolean(),
    "UUID": Serdes.uuid(),
    "Void": Serdes.void(),
}
_SHORT_SERDES: dict[str, Serde[Any]] = {
    "string": Serdes.string(),
    "bytes": Serdes.bytes(),
    "integer": Serdes.integer(),
    "long": Serdes.long(),
    "short": Serdes.short(),
    "float": Serdes.float(),
    "double": Serdes.double(),
    "boolean": Serdes.boolean(),
    "uuid": Serdes.uuid(),
    "void": Serdes.void(),
    "json": Serdes.json(),
}
MURMUR2, ROUND_ROBIN, STICKY = "murmur2", "round_robin", "sticky"
_PARTITIONERS = {
    "org.apache.kafka.clients.producer.internals.DefaultPartitioner": MURMUR2,
    "org.apache.kafka.clients.producer.UniformStickyPartitioner": STICKY,
    "org.apache.kafka.clients.producer.RoundRobinPartitioner": ROUND_ROBIN,
    MURMUR2: MURMUR2,
    STICKY: STICKY,
    ROUND_ROBIN: ROUND_ROBIN,
}
_CONSUMER = "org.apache.kafka.clients.consumer."
_ASSIGNORS = {
    f"{_CONSUMER}RangeAssignor": "range",
    f"{_CONSUMER}RoundRobinAssignor": "roundrobin",
    f"{_CONSUMER}CooperativeStickyAssignor": "cooperative-sticky",
    f"{_CONSUMER}StickyAssignor": "sticky",
    "range": "range",
    "roundrobin": "roundrobin",
    "cooperative-sticky": "cooperative-sticky",
    "sticky": "sticky",
}


def serde_of(option: str, value: Any) -> Any:
    """Return the serde of a class name or a short name such as "string"; other objects unchanged."""
    if not isinstance(value, str):
        return value
    suffix = "Deserializer" if option.endswith("deserializer") else "Serializer"
    if value.startswith(_SERIALIZATION) and value.endswith(suffix):
        kind = value.removeprefix(_SERIALIZATION).removesuffix(suffix)
        if kind in _SERDES:
            return _SERDES[kind]
    if value in _SHORT_SERDES:
        return _SHORT_SERDES[value]
    raise ConfigError(
        f"{option}={value!r} is not known: use {_SERIALIZATION}String{suffix} or another of "
        f"Kafka's own, one of {', '.join(_SHORT_SERDES)}, or pass a serde or a function in code"
    )


def partitioner_of(value: Any) -> Any:
    """Return the name of a built-in partitioner; an object or function is returned unchanged."""
    if not isinstance(value, str):
        return value
    if value not in _PARTITIONERS:
        raise ConfigError(
            f"partitioner.class={value!r} is not known: use one of {', '.join(_PARTITIONERS)}, "
            "or pass a function or an object with a method `partition` in code"
        )
    return _PARTITIONERS[value]


def assignors_of(value: Any) -> str | list[Any]:
    """Return the names of assignors, from Java class names or short names: a text if librdkafka can
    join a group with all of them.

    In code, an element may be an assignor itself (`ottla.client.PartitionAssignor`) or its class.
    """
    parts = value.split(",") if isinstance(value, str) else value
    rows = parts if isinstance(parts, list | tuple) else [parts]
    assignors = list(map(_assignor_of, rows))
    return ",".join(assignors) if has_librdkafka(assignors) else assignors


def _assignor_of(part: Any) -> Any:
    if not isinstance(part, str):
        assignor = part() if isinstance(part, type) else part
        if isinstance(getattr(assignor, "name", None), str) and hasattr(assignor, "assign"):
            return assignor
    elif part.strip() in _ASSIGNORS:
        return _ASSIGNORS[part.strip()]
    raise ConfigError(
        f"partition.assignment.strategy={part!r} is not available: use one of "
        f"{', '.join(_ASSIGNORS)}, or pass an ottla.client.PartitionAssignor in code"
    )


def interceptors_of(value: Any) -> list[Any]:
    """Return interceptors as objects; classes are instantiated, names are refused."""
    rows = [value] if isinstance(value, str) or not isinstance(value, list | tuple) else value
    interceptors = []
    for row in rows:
        if isinstance(row, str):
            if not row.strip():
                continue
            raise ConfigError(
                f"interceptor.classes={row!r} is refused: a file must not choose the code that "
                "runs; pass the interceptor itself in code, as interceptors=[…]"
            )
        interceptors.append(row() if isinstance(row, type) else row)
    return interceptors
