"""The forms of a page, read from its HTML."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

# Types of inputs that accept text; the browser itself refuses wrong dates, and numbers below `min`.
_TYPED = ("text", "search", "password", "number", "datetime-local")


@dataclass
class Form:
    """A form; `actions` are the values of its fields and buttons named action.

    `typed` are the names of the fields in which a user types. `checked` are the ones whose
    wrong values the browser refuses by itself.
    """

    method: str
    actions: set[str] = field(default_factory=set)
    typed: set[str] = field(default_factory=set)
    checked: set[str] = field(default_factory=set)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.is_inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Add a form, or a field to the form."""
        values = {name: text or "" for name, text in attrs}
        name, kind = values.get("name", ""), values.get("type", "text")
        if tag == "form":
            self.forms.append(Form(values.get("method", "get")))
            self.is_inside = True
        elif self.is_inside and name == "action":
            self.forms[-1].actions.add(values.get("value", ""))
        elif self.is_inside and (tag == "textarea" or (tag == "input" and kind in _TYPED)):
            self.forms[-1].typed.add(name)
            if kind == "datetime-local" or (kind == "number" and "min" in values):
                self.forms[-1].checked.add(name)

    def handle_endtag(self, tag: str) -> None:
        """Close a form."""
        self.is_inside = self.is_inside and tag != "form"


def read_forms(html: str) -> list[Form]:
    """Return the forms of a page, in its order."""
    reader = _Reader()
    reader.feed(html)
    return reader.forms
