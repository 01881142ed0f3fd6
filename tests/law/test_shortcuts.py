"""The shortcuts of Produce and Fetch account for every input of their handlers.

`server/produce/shortcut.py` and `server/fetch/shortcut.py` respond without the handler. If a
handler reads a new input (an authorizer, a rate, a new state of a partition), this test fails. Then
there are three choices: read it in the shortcut, too; keep `learn` from remembering such requests;
or state here why it does not matter. The tests of the shortcuts in tests/unit/server compare the
responses of both paths.
"""

import ast
from collections.abc import Iterator

from tests.law import source

HANDLERS = (
    "ottla/server/handlers/produce.py",
    "ottla/server/produce/admission.py",
    "ottla/server/produce/appending.py",
    "ottla/server/handlers/fetch.py",
    "ottla/server/fetch/parked.py",
    "ottla/server/fetch/reading.py",
    "ottla/server/fetch/response.py",
    "ottla/server/fetch/sessions.py",
)

# The inputs of a handler from the request's context, and how the shortcut handles them.
SEEN_TO = {
    "context.access": "the shortcut asks `RouteParts.may` about each request",
    "context.api_version": "each version has a shortcut of its own",
    "context.usage": "clients with quotas never use a shortcut",
    "context.client_id": "identifies waiting requests, which the handler processes",
    "context.keeps_order": "set for waiting requests, which the handler processes",
    "context.has_errors": "the handler returns responses with an error",
    "context.address_of": "for other leaders in responses with errors, which the handler returns",
    "context.connection": "`bytes_max` reads its room for responses in both paths",
    "broker.admission": "the handler processes transactional batches",
    "broker.clock": "measures time for quotas",
    "broker.fetch_sessions": "used in both paths",
    "broker.heavy_batches": "HeavyBatchError is an ApiError, which sends a batch to the handler",
    "broker.image": "for other leaders in responses with errors, which the handler returns",
    "broker.options": "`bytes_max` reads fetch.max.bytes in both paths",
    "broker.rack": "for other leaders in responses with errors, which the handler returns",
    "broker.replicas": "both paths look up the partition there, or cache one that is the leader",
    "broker.tasks": "for waiting requests, which the handler processes",
}

# The errors that a handler returns, and how the shortcut also returns them.
REFUSED = {
    "FETCH_SESSION_ID_NOT_FOUND": "`find_single` finds no session",
    "FETCH_SESSION_TOPIC_ID_ERROR": "the session's key is an id or a name, depending on the version",
    "INVALID_FETCH_SESSION_EPOCH": "`find_single` compares the epoch",
    "INVALID_PRODUCER_ID_MAPPING": "the handler processes requests with a transactional id",
    "INVALID_RECORD": "a request without records has fewer bytes than a batch",
    "INVALID_REQUIRED_ACKS": "`learn` accepts only 1 and -1, and acks are among the bytes that are looked up",
    "INVALID_TOPIC_EXCEPTION": "`learn` accepts no rejected request, and names do not change",
    "OUT_OF_ORDER_SEQUENCE_NUMBER": "the handler processes transactional batches; the log checks others",
    "REQUEST_TIMED_OUT": "the handler processes heavy batches",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "the handler processes transactional batches",
    "UNSUPPORTED_COMPRESSION_TYPE": "in versions without zstd, the handler processes batches with it",
}


def _looked_at(tree: ast.Module) -> Iterator[str]:
    """Yield the uses of `context.x`, and `broker.x` for `context.broker.x` and what is current."""
    for node in source.nodes(tree):
        if not isinstance(node, ast.Attribute):
            continue
        owner = ast.unparse(node.value).replace("self._context", "context")
        owner = owner.removesuffix(".current")
        if owner == "context" and node.attr != "broker":
            yield f"context.{node.attr}"
        elif owner in ("broker", "context.broker") and node.attr != "current":
            yield f"broker.{node.attr}"


def _refused(tree: ast.Module) -> Iterator[str]:
    """Yield the codes that are raised, or put into a response, by name."""
    for node in source.nodes(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("ApiError", "int"):
            for argument in node.args[:1]:
                if ast.unparse(argument).startswith("ErrorCode."):
                    yield ast.unparse(argument).removeprefix("ErrorCode.")


def _handlers() -> list[ast.Module]:
    sessions = [item.tree for item in source.sources() if item.path in HANDLERS]
    assert len(sessions) == len(HANDLERS)
    return sessions


def test_shortcut_accounts_for_every_input_of_the_handler() -> None:
    """Each input from the request's context and the broker is listed with the shortcut's treatment."""
    names = {name for tree in _handlers() for name in _looked_at(tree)}
    assert names == set(SEEN_TO)


def test_shortcut_accounts_for_every_error_of_the_handler() -> None:
    """Each error code is listed with a reason; codes of logs and partitions occur in both paths."""
    names = {name for tree in _handlers() for name in _refused(tree)}
    assert names == set(REFUSED)
