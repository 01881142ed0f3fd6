"""Tests use public names: the number of accesses to private ones is committed, and only falls.

An access is an attribute whose name begins with one underscore, `object._name`, read or written,
in a Python file below `tests`; each place counts. These are no private accesses:

* the object is `self`, `cls` or `super()`, or a module of the tests that the file imports;
* dunder names, the methods and fields of named tuples (`_replace`, `_asdict`, `_fields`, `_make`),
  and names that end with an underscore, which belong to a protocol (`_repr_html_`);
* public names of other projects: `os._exit` and the error codes of librdkafka, `KafkaError._…`.

`private_access.toml` has the number of each folder. Names in texts, as in `monkeypatch.setattr(x,
"_name", …)`, do not count: a test that replaces a part needs its name, public or not.
"""

import ast
import tomllib
from collections import Counter

from tests.law import source

_NAMED_TUPLE = {"_replace", "_asdict", "_fields", "_make", "_field_defaults"}
_OWN = {"self", "cls", "super()"}


def _modules_of_tests(item: source.Source) -> set[str]:
    """Return the names under which a file knows other modules of the tests."""
    return {
        alias.asname or alias.name
        for node in source.nodes(item.tree)
        if isinstance(node, ast.ImportFrom)
        and (node.level or (node.module or "").startswith("tests"))
        for alias in node.names
        if alias.name.islower()
    }


def _accesses(item: source.Source) -> list[str]:
    """Return the line and the text of each private access."""
    own = _OWN | _modules_of_tests(item)
    found = []
    for node in source.nodes(item.tree):
        if not isinstance(node, ast.Attribute) or not node.attr.startswith("_"):
            continue
        if node.attr.startswith("__") or node.attr.endswith("_") or node.attr in _NAMED_TUPLE:
            continue
        value = ast.unparse(node.value)
        is_foreign = value.endswith("KafkaError") or f"{value}.{node.attr}" == "os._exit"
        if value not in own and not is_foreign:
            found.append(f"{item.path}:{node.lineno}: {value}.{node.attr}")
    return found


def _folder(path: str) -> str:
    return "/".join(path.split("/")[:2])


def test_private_accesses_of_tests_only_fall() -> None:
    """Each folder has as many as private_access.toml says: lower the number when one disappears."""
    places = [place for item in source.sources("tests") for place in _accesses(item)]
    counts = Counter(_folder(place) for place in places)
    text = (source.ROOT / "tests/law/private_access.toml").read_text(encoding="utf-8")
    limits: dict[str, int] = tomllib.loads(text)["private"]
    grown = {folder for folder, count in counts.items() if count > limits.get(folder, 0)}
    assert not grown, "\n".join(
        ["use public names:", *(place for place in places if _folder(place) in grown)]
    )
    fallen = {folder: counts[folder] for folder, limit in limits.items() if counts[folder] < limit}
    assert not fallen, "lower these numbers in tests/law/private_access.toml"


def test_an_access_is_private_by_its_name_and_its_object() -> None:
    """One place of each kind; none of the exceptions counts."""
    text = """
from tests.law import source
self._a, cls._a, super()._a, source._a
x.__a__, x._replace, x._repr_html_, os._exit, confluent_kafka.KafkaError._FATAL
x._a
self.x._a
"""
    item = source.Source("tests/x.py", text, ast.parse(text))
    assert _accesses(item) == ["tests/x.py:5: x._a", "tests/x.py:6: self.x._a"]
