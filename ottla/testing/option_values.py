"""Values of options as tests write them: texts, numbers and booleans."""

from collections.abc import Mapping

from ottla.base.errors import ConfigError

OptionValue = str | int | float | bool


def option_texts(options: Mapping[str, OptionValue]) -> dict[str, str]:
    """Return options with their values as in a properties file.

    Raises ConfigError for a value of another type.

    >>> option_texts({"num.partitions": 3, "auto.create.topics.enable": False})
    {'num.partitions': '3', 'auto.create.topics.enable': 'false'}
    """
    return {name: _text(name, value) for name, value in options.items()}


def _text(name: str, value: OptionValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise ConfigError(f"option {name!r} is {value!r}: write a text, a number or a boolean")
