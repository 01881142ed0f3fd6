"""The values of options, in Python and in requests."""

ConfigValue = str | int | float | bool
"""The value of an option."""


def config_text(value: ConfigValue) -> str:
    """Return a value as Kafka writes it: true and false in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)
