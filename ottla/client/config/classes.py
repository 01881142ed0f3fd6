"""Java class names in configuration files, and what they mean here.

Only the classes in these tables are known. Any other dotted path in a file is refused: a file of
settings must not choose the code that runs. In code, pass the object itself.
"""

from typing import Any

from ottla.base.errors import ConfigError
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
MURMUR2, ROUND_ROBIN = "murmur2", "round_robin"
_PARTITIONERS = {
    "org.apache.kafka.clients.producer.internals.DefaultPartitioner": MURMUR2,
    "org.apache.kafka.clients.producer.UniformStickyPartitioner": "sticky",
    "org.apache.kafka.clients.producer.RoundRobinPartitioner": ROUND_ROBIN,
    MURMUR2: MURMUR2,
    "sticky": "sticky",
    ROUND_ROBIN: ROUND_ROBIN,
}
_CONSUMER = "org.apache.kafka.clients.consumer."
_ASSIGNORS = {
    f"{_CONSUMER}RangeAssignor": "range",
    f"{_CONSUMER}RoundRobinAssignor": "roundrobin",
    f"{_CONSUMER}CooperativeStickyAssignor": "cooperative-sticky",
    "range": "range",
    "roundrobin": "roundrobin",
    "cooperative-sticky": "cooperative-sticky",
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


def assignors_of(value: Any) -> str:
    """Return librdkafka's names of assignors, from Java class names or short names."""
    parts = value.split(",") if isinstance(value, str) else list(value)
    names = []
    for part in map(str.strip, parts):
        if part not in _ASSIGNORS:
            raise ConfigError(
                f"partition.assignment.strategy={part!r} is not available: use one of "
                f"{', '.join(_ASSIGNORS)}; cooperative-sticky replaces the StickyAssignor"
            )
        names.append(_ASSIGNORS[part])
    return ",".join(names)


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
