"""What the handlers of Produce and Fetch look at for each request, their short ways have been thought of.

`server/{produce,fetch}/shortcut.py` answer without the handler. If a handler reads something new (an
authorizer, a rate, a new state of a partition), this test fails, and there are three choices: read it
in code that both ways share, keep `learn` from remembering such requests, or write here why it cannot
matter. tests/unit/server/{produce,fetch}/test_shortcut.py compare the answers of both ways.
"""

import ast
from collections.abc import Iterator

from tests.law import source

HANDLERS = (
    "ottla/server/handlers/produce.py",
    "ottla/server/handlers/fetch.py",
    "ottla/server/fetch/parked.py",
    "ottla/server/fetch/reading.py",
    "ottla/server/fetch/response.py",
    "ottla/server/fetch/sessions.py",
)

# What a handler reads of the request's circumstances, and how the short way does without.
SEEN_TO = {
    "context.api_version": "each version has a shortcut of its own",
    "context.usage": "clients with quotas never come to a shortcut",
    "context.client_id": "names work that has to wait, which is the handler's",
    "context.keeps_order": "set for work that has to wait, which is the handler's",
    "context.has_errors": "an answer with an error is the handler's",
    "context.address_of": "tells of other leaders in answers with errors, which are the handler's",
    "context.connection": "`bytes_max` reads its room for answers, in both ways",
    "broker.admission": "transactional batches are the handler's",
    "broker.clock": "times quotas",
    "broker.fetch_sessions": "both ways ask it",
    "broker.heavy_batches": "HeavyBatchError is an ApiError, which sends a batch to the handler",
    "broker.image": "tells of other leaders in answers with errors, which are the handler's",
    "broker.options": "`bytes_max` reads fetch.max.bytes, in both ways",
    "broker.rack": "tells of other leaders in answers with errors, which are the handler's",
    "broker.replicas": "both ways find the partition there, or hold one that leads",
    "broker.tasks": "for work that has to wait, which is the handler's",
}

# What a handler itself refuses, and how the short way comes to refuse it too.
REFUSED = {
    "FETCH_SESSION_ID_NOT_FOUND": "`find_single` finds none",
    "FETCH_SESSION_TOPIC_ID_ERROR": "the session's key is an id or a name, as the version has it",
    "INVALID_FETCH_SESSION_EPOCH": "`find_single` compares the epoch",
    "INVALID_PRODUCER_ID_MAPPING": "a request with a transactional id is the handler's",
    "INVALID_RECORD": "no records are fewer bytes than a batch has",
    "INVALID_REQUIRED_ACKS": "`learn` takes 1 and -1 only, and acks are among the bytes looked up",
    "INVALID_TOPIC_EXCEPTION": "`learn` takes no request that was refused, and names stay",
    "OUT_OF_ORDER_SEQUENCE_NUMBER": "a transactional batch is the handler's; the log judges others",
    "REQUEST_TIMED_OUT": "a heavy batch is the handler's",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "a transactional batch is the handler's",
    "UNSUPPORTED_COMPRESSION_TYPE": "in the versions without zstd, batches with it are the handler's",
    "CLUSTER_AUTHORIZATION_FAILED": "a request with a replica id is the handler's",
}


def _looked_at(tree: ast.Module) -> Iterator[str]:
    """Go over `context.x`, and `broker.x` for `context.broker.x`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        owner = ast.unparse(node.value).replace("self._context", "context")
        if owner == "context" and node.attr != "broker":
            yield f"context.{node.attr}"
        elif owner in ("broker", "context.broker"):
            yield f"broker.{node.attr}"


def _refused(tree: ast.Module) -> Iterator[str]:
    """Go over the codes that are raised, or put into an answer, by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("ApiError", "int"):
            for argument in node.args[:1]:
                if ast.unparse(argument).startswith("ErrorCode."):
                    yield ast.unparse(argument).removeprefix("ErrorCode.")


def _handlers() -> list[ast.Module]:
    found = [item.tree for item in source.sources() if item.path in HANDLERS]
    assert len(found) == len(HANDLERS)
    return found


def test_what_a_handler_looks_at_is_seen_to_by_the_short_way() -> None:
    """Environment of the request and parts of the broker."""
    found = {name for tree in _handlers() for name in _looked_at(tree)}
    assert found == set(SEEN_TO)


def test_what_a_handler_refuses_the_short_way_does_not_take() -> None:
    """Each code has its reason here; those of logs and partitions are met in both ways."""
    found = {name for tree in _handlers() for name in _refused(tree)}
    assert found == set(REFUSED)
