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


# The word for the objects that a part receives, whichever part it is.
_SHARED = {"Dependencies"}
_MODULES_MAX = 3
# The names that at least two, and three, modules define: lower a limit with each new name.
_REPEATED_MAX = {2: 176, 3: 36}
_VAGUE = ("Limits", "Plan", "Window", "Transaction", "Route", "Row", "Keys")


def _modules_of_classes() -> dict[str, list[str]]:
    """Return the modules that define each public class name; Kafka's own struct names are kept."""
    modules: dict[str, list[str]] = {}
    for item in source.sources():
        if item.path.startswith("ottla/wire/messages/"):
            continue
        for node in item.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules.setdefault(node.name, []).append(item.path)
    return {name: paths for name, paths in modules.items() if name not in _SHARED}


def test_few_modules_define_classes_of_the_same_name() -> None:
    """At most three modules do, and the number of such names only falls."""
    modules = _modules_of_classes()
    many = {name: paths for name, paths in modules.items() if len(paths) > _MODULES_MAX}
    assert not many, "Name these classes after their subject"
    for least, limit in _REPEATED_MAX.items():
        repeated = {name: paths for name, paths in modules.items() if len(paths) >= least}
        assert len(repeated) <= limit, f"Name the new one after its subject: {repeated}"


def test_a_name_that_fits_many_subjects_names_one_class() -> None:
    """Two classes Limits or Plan would make readers look at the imports."""
    modules = _modules_of_classes()
    repeated = {name: modules[name] for name in _VAGUE if len(modules.get(name, ())) > 1}
    assert not repeated, "Name these classes after their subject"
