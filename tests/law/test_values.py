"""The broker is a value: constructed whole, and changed only where it says so."""

import ast
import dataclasses
from collections.abc import Iterator

from ottla.server.context import Broker
from ottla.server.current import Current
from tests.law import source

# The modules that replace each of the current values of a broker.
_REPLACED_BY = {
    "image": {"ottla/server/local_broker.py"},
    "options": {"ottla/server/composition.py", "ottla/server/node.py"},
    "advertised_apis": {"ottla/server/composition.py"},
    # It is changed in place by the watches on other processes.
    "contacts": set(),
    # It is set in place by the first notice of a controller.
    "informed": set(),
    # Its owner is the class itself.
    "departed": set(),
}


def _assigned(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the owner and the name of each attribute that is assigned to."""
    for node in source.nodes(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            yield ast.unparse(node.value), node.attr


def test_broker_is_constructed_whole_and_never_changed() -> None:
    """Its class is frozen and has no default, so mypy finds each missing part and each assignment."""
    fields = dataclasses.fields(Broker)
    assert all(
        field.default is field.default_factory is dataclasses.MISSING and field.kw_only
        for field in fields
    )
    assert Broker.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert {field.name for field in fields} == set(Broker.__slots__)


def test_current_values_are_replaced_by_their_owners_only() -> None:
    """The image is replaced by the controller's notices, the other values by the node."""
    assert set(_REPLACED_BY) == set(Current.__slots__)
    replaced: dict[str, set[str]] = {name: set() for name in _REPLACED_BY}
    for module in source.sources():
        if module.path.startswith("ottla/server/"):
            for owner, name in _assigned(module.tree):
                if owner.split(".")[-1].strip("_") == "current" and name in replaced:
                    replaced[name].add(module.path)
    assert replaced == _REPLACED_BY
