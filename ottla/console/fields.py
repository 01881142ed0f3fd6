"""Values of forms and of query strings, with errors that name the field."""

from collections.abc import Iterator, Mapping
from urllib.parse import parse_qs

from ottla.base.errors import ConfigError
from ottla.operations.numbers import LONG_MAX, whole_number

MAX_FIELDS = 5_000


class Fields(Mapping[str, str]):
    """The fields of a form or a query string; a repeated field has its first value.

    The getters strip the text and raise ConfigError, which names the field, for a wrong value.
    """

    def __init__(self, encoded: str = "") -> None:
        try:
            self._values = parse_qs(
                encoded, keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="replace"
            )
        except ValueError as error:
            raise ConfigError(f"a form may have {MAX_FIELDS} fields at most") from error

    def __getitem__(self, name: str) -> str:
        """Return the first value of a field, as sent."""
        return self._values[name][0]

    def __iter__(self) -> Iterator[str]:
        """Return the names of the fields."""
        return iter(self._values)

    def __len__(self) -> int:
        """Return the number of fields."""
        return len(self._values)

    def all(self, name: str) -> list[str]:
        """Return every value of a field."""
        return self._values.get(name, [])

    def text(self, name: str, default: str = "") -> str:
        """Return a text; the default if the field is absent or empty."""
        return self.get(name, "").strip() or default

    def required(self, name: str) -> str:
        """Return a text that must not be empty."""
        text = self.text(name)
        if not text:
            raise ConfigError(f"field {name!r} is empty: fill it in")
        return text

    def integer(
        self,
        name: str,
        default: int | None = None,
        *,
        least: int | None = None,
        most: int = LONG_MAX,
    ) -> int:
        """Return an integer from `least` to `most`; the default if the field is empty."""
        text = self.text(name)
        if not text and default is not None:
            return default
        number = whole_number(text)
        if number is None:
            is_large = text.isascii() and text.lstrip("+-").isdecimal()
            reason = "a smaller number" if is_large else "a whole number"
            raise ConfigError(f"field {name!r} is {text!r}: {reason} is needed")
        if least is not None and number < least:
            raise ConfigError(f"field {name!r} is {number}: the least is {least}")
        if number > most:
            raise ConfigError(f"field {name!r} is {number}: the most is {most}")
        return number

    def is_checked(self, name: str) -> bool:
        """Return True for a ticked checkbox."""
        return bool(self.text(name))
