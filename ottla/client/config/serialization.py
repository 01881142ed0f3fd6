"""The functions of the options key.serializer, value.serializer and their deserializers."""

import logging
import struct
from collections.abc import Callable, Mapping
from typing import Any

from ottla.base.user_code import LoggedErrors
from ottla.client.config.classes import serde_of
from ottla.client.serdes.serde import Serde

_log = logging.getLogger("ottla.client")
# Exceptions that serializers and deserializers raise for data that they do not support.
UNFIT = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, struct.error)

# Takes a topic and a value, or bytes, and returns bytes, or a value.
SerdeFunction = Callable[[str, Any], Any]


def function_from(option: str, value: Any, configs: Mapping[str, Any]) -> SerdeFunction | None:
    """Return the function that `value` means for an option; None if bytes are used as they are.

    `value` is a serde, a class name, a function of the data, or an object with `serialize(topic,
    value)` or `deserialize(topic, data)` and perhaps `configure(configs, is_key)` and `close()`, as
    in Java.
    Raises TypeError for anything else, ConfigError for an unknown name.
    """
    if value is None:
        return None
    is_key, serializes = option.startswith("key"), not option.endswith("deserializer")
    name = "serialize" if serializes else "deserialize"
    result = serde_of(option, value() if _is_plug_in(value, name) else value)
    if isinstance(result, Serde):
        return _of_serde(result, is_key=is_key, serializes=serializes)
    if hasattr(result, "configure") and not isinstance(result, type):
        result.configure(configs, is_key)
    method: SerdeFunction | None = getattr(result, name, None)
    if method is not None:
        return method
    if callable(result):
        function = result
        return lambda _, data: None if data is None else function(data)
    raise TypeError(
        f"{option} must be a serde or a function, not {value!r}, which has no method {name}"
    )


def close_function(option: str, function: SerdeFunction | None) -> None:
    """Call `close` of the object behind a function of `function_from`, as in Java; log its error."""
    close = getattr(getattr(function, "__self__", None), "close", None)
    if close is not None:
        with LoggedErrors(lambda error: _log.error("close of the %s: %r", option, error)):
            close()


def _is_plug_in(value: Any, method: str) -> bool:
    """Return True for a class of serializers; another one, such as `int`, is a function itself."""
    if not isinstance(value, type):
        return False
    is_function = any("__call__" in vars(base) for base in value.__mro__)
    return is_function or issubclass(value, Serde) or hasattr(value, method)


def _of_serde(serde: Serde[Any], *, is_key: bool, serializes: bool) -> SerdeFunction:
    def direction(of_topic: Serde[Any]) -> Callable[[Any], Any]:
        return of_topic.to_bytes if serializes else of_topic.from_bytes

    if serde.bind is None:
        convert = direction(serde)
        return lambda _, data: convert(data)
    bound: dict[str, Callable[[Any], Any]] = {}

    def converted(topic: str, data: Any) -> Any:
        if topic not in bound:
            bound[topic] = direction(serde.of(topic, is_key=is_key))
        return bound[topic](data)

    return converted
