"""The page docs/troubleshooting.md: errors of the protocol, and findings of `ottla doctor`.

Meanings are the messages of the error table, and findings the sentences of the doctor's code.
`REMEDIES` has a remedy for each error that users see.
"""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from ottla.base.errors import ERRORS, ErrorCode

_DOCTOR = Path(__file__).resolve().parents[1] / "ottla/tools/doctor"
_DYNAMIC = "…"

REMEDIES = {
    "OFFSET_OUT_OF_RANGE": "The offset was deleted, or lost: set `auto.offset.reset`, or reset the group with `ottla group reset`.",
    "CORRUPT_MESSAGE": "Send again. If it repeats, look for a compacted topic and records without a key, or a damaged network.",
    "UNKNOWN_TOPIC_OR_PARTITION": "`ottla topic list` lists the topics. After a deletion, restart clients that keep the old partitions.",
    "LEADER_NOT_AVAILABLE": "Wait for the election. If it stays, `ottla cluster health` names the replicas that are down.",
    "NOT_LEADER_OR_FOLLOWER": "None: the client reads the metadata again.",
    "REQUEST_TIMED_OUT": "Look at the log of the broker, and at the in-sync replicas (`ottla topic describe`).",
    "MESSAGE_TOO_LARGE": "Raise `max.message.bytes` of the topic, or send smaller batches.",
    "COORDINATOR_NOT_AVAILABLE": "Wait. If it stays, `__consumer_offsets` has no leader: `ottla cluster health`.",
    "NOT_COORDINATOR": "None: the client looks for the coordinator again.",
    "NOT_ENOUGH_REPLICAS": "Start the brokers that are down, or lower `min.insync.replicas` knowingly.",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": "As NOT_ENOUGH_REPLICAS; the records may be in the log, and a retry without idempotence doubles them.",
    "ILLEGAL_GENERATION": "The member missed a rebalance: process fewer records between two polls.",
    "UNKNOWN_MEMBER_ID": "The session ended: increase `session.timeout.ms` or `max.poll.interval.ms`, or process fewer records between two polls.",
    "REBALANCE_IN_PROGRESS": "None: the consumer joins again. Commit in the listener of revoked partitions.",
    "TOPIC_AUTHORIZATION_FAILED": "`ottla acl list` shows the entries; `ottla acl add` adds one.",
    "GROUP_AUTHORIZATION_FAILED": "The user needs READ on the group: `ottla acl add`.",
    "CLUSTER_AUTHORIZATION_FAILED": "The user needs an operation on the cluster, or to be in `super.users`.",
    "UNSUPPORTED_VERSION": "Use a client of Kafka 2.1 or newer; [APIs](apis.md) has the versions.",
    "TOPIC_ALREADY_EXISTS": "Use `ottla topic config` to change it.",
    "INVALID_REPLICATION_FACTOR": "Use at most as many replicas as there are brokers (`ottla cluster info`).",
    "INVALID_CONFIG": "[Options](options.md) has names and limits.",
    "OUT_OF_ORDER_SEQUENCE_NUMBER": "Records may have been lost: close the producer and create a new one.",
    "INVALID_PRODUCER_EPOCH": "Another producer with the same transactional id has taken over: run one at a time.",
    "INVALID_TXN_STATE": "Abort, and begin a new transaction; if it repeats, create a new producer.",
    "CONCURRENT_TRANSACTIONS": "None: the client retries until the former transaction has ended.",
    "KAFKA_STORAGE_ERROR": "A log directory is offline: look at the broker's log, at the disk, and at `ottla log dirs`.",
    "SASL_AUTHENTICATION_FAILED": "Check user, password and mechanism; `ottla security user` sets a password.",
    "FENCED_INSTANCE_ID": "Two members have the same `group.instance.id`: give each its own.",
    "GROUP_MAX_SIZE_REACHED": "Raise `group.max.size`, or use fewer members.",
    "THROTTLING_QUOTA_EXCEEDED": "Wait, or raise the quota: `ottla quota list`.",
    "PRODUCER_FENCED": "Another producer with the same transactional id has taken over: run one at a time.",
    "INVALID_RECORD": "A compacted topic needs a key in each record; other rules are options of the topic.",
}  # fmt: skip


def error_rows() -> list[list[str]]:
    """Return name, meaning, and remedy of each error with a remedy."""
    rows = []
    for code in ErrorCode:
        if code.name in REMEDIES:
            again = "yes" if ERRORS[code].retriable else "no"
            rows.append([f"`{code.name}`", code.message, again, REMEDIES[code.name]])
    return rows


def other_errors() -> str:
    """Return the names and meanings of the other errors, each on a line."""
    return "\n".join(
        f"* `{code.name}`: {code.message}"
        for code in ErrorCode
        if code.name not in REMEDIES and code is not ErrorCode.NONE
    )


def findings() -> list[list[str]]:
    """Return each problem that the doctor reports, with its remedy."""
    rows: list[list[str]] = []
    for path in sorted(_DOCTOR.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        shared = _values(tree.body)
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                values = shared | _values(list(ast.walk(function)))
                for row in _calls(function, values):
                    if row not in rows:
                        rows.append(row)
    return rows


def _values(nodes: Iterable[ast.AST]) -> dict[str, ast.expr]:
    """Return the expressions that these assignments give to names."""
    return {
        target.id: node.value
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _calls(tree: ast.AST, values: dict[str, ast.expr]) -> Iterator[list[str]]:
    """Yield finding and remedy of each call whose texts are in the code."""
    for node in ast.walk(tree):
        is_problem = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("fail", "warn")
        if isinstance(node, ast.Call) and is_problem and len(node.args) == 3:
            found, remedy = (_text(item, values) for item in node.args[1:])
            if found.strip(f"{_DYNAMIC}: ") and remedy.strip(f"{_DYNAMIC}: "):
                yield [found, remedy]


def _text(node: ast.expr, values: dict[str, ast.expr]) -> str:
    """Return the text of an expression, with an ellipsis for each value of the moment."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, values) for part in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left, values) + _text(node.right, values)
    if isinstance(node, ast.Name) and node.id in values and node.id not in ("check", "about"):
        return _text(values[node.id], {})
    return _DYNAMIC
