"""Short forms of the language, as `/search` and `ottla topic search` have them. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ottla.base.search.conditions import Condition, Field, Operator
from ottla.base.search.language import parse_filter


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """The filters of a search, all of which must match; empty ones are none.

    `headers` are NAME or NAME=TEXT, `where` are texts of the language. `ignore_case` is for all.
    """

    key: str = ""
    value: str = ""
    key_regex: str = ""
    value_regex: str = ""
    headers: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    ignore_case: bool = False

    def conditions(self) -> tuple[Condition, ...]:
        """Return the equivalent conditions; ConfigError if a text cannot be parsed."""
        return tuple(
            replace(condition, ignores_case=True) if self.ignore_case else condition
            for condition in self._conditions()
        )

    def _conditions(self) -> Iterator[Condition]:
        for field, operator, text in (
            (Field.KEY, Operator.CONTAINS, self.key),
            (Field.VALUE, Operator.CONTAINS, self.value),
            (Field.KEY, Operator.REGEX, self.key_regex),
            (Field.VALUE, Operator.REGEX, self.value_regex),
        ):
            if text:
                yield Condition(field, operator, text)
        for text in self.headers:
            name, _, part = text.partition("=")
            operator = Operator.CONTAINS if part else Operator.EXISTS
            yield Condition(Field.HEADER, operator, part, name)
        for text in self.where:
            yield from parse_filter(text)
