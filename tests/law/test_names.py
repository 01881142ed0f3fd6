"""Names have a meaning; collections of unrelated code are not allowed."""

import ast
import re

from tests.law import source

_BANNED = re.compile(r"(Manager|Helper|Utils?|Common|Impl|(?<!Set)Data)$|^Base[A-Z]|Manager|Helper")
_DRAWERS = {"util", "utils", "common", "helpers", "misc", "manager"}


def test_no_class_has_a_name_without_meaning() -> None:
    """Manager, Helper, Util, Common, Base…, Impl and …Data have no meaning (SetData is a verb)."""
    offences = {
        f"{item.path}:{node.name}": "name"
        for item in source.sources()
        # Kafka's own struct names are kept in the messages.
        if not item.path.startswith("ottla/wire/messages/")
        for node in source.nodes(item.tree)
        if isinstance(node, ast.ClassDef) and _BANNED.search(node.name.lstrip("_"))
    }
    assert source.complaints("names", offences, "Name these after what they are:") == []


def test_no_module_has_a_name_without_meaning() -> None:
    """The name of a module is one noun of the field."""
    offences = {
        item.path: "name" for item in source.sources() if _DRAWERS & set(item.module.split("."))
    }
    assert (
        source.complaints("module-names", offences, "Name these modules after their subject:") == []
    )
