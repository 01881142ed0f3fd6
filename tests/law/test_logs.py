"""Log lines are events with fields, so that programs can parse them."""

import ast

from ottla.base.logs import TEMPLATE
from tests.law import source
from tests.law.test_calls import BROKER_PACKAGES

_LEVELS = ("debug", "info", "warning", "error", "critical", "exception")


def test_log_lines_are_events_with_fields() -> None:
    """A template has the form `_log.info("topic created topic=%s partitions=%d", …)`: words, then
    name=value.
    """
    offences = {}
    for item in source.sources():
        if item.package not in BROKER_PACKAGES:
            continue
        for node in source.nodes(item.tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if ast.unparse(node.func.value) != "_log" or node.func.attr not in _LEVELS:
                continue
            template = node.args[0]
            text = template.value if isinstance(template, ast.Constant) else ""
            if not (isinstance(text, str) and TEMPLATE.fullmatch(text)):
                offences[f"{item.path}:{ast.unparse(template)}"] = f"line {node.lineno}"
    assert (
        source.complaints(
            "logs", offences, "Write these as `what happened name=%s …` (ottla/base/logs.py):"
        )
        == []
    )


def test_peers_cannot_flood_the_log_through_a_connection() -> None:
    """Peers can provoke every line of ottla.net, so all its loggers have a limited rate."""
    offences = {
        item.path: "getLogger"
        for item in source.sources()
        if item.path.startswith("ottla/net/") and "getLogger" in item.text
    }
    assert source.complaints("provoked-loggers", offences, "Use logs.provoked_logger:") == []
