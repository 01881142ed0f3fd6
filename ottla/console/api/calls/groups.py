"""Operations on consumer groups and transactions."""

from collections.abc import Mapping

from ottla.console.accounts.roles import Role
from ottla.console.api.operations import CLUSTER_PATH, Operation
from ottla.console.model import groups, offsets, transactions
from ottla.operations.changes import Change
from ottla.operations.offsets.plans import Key, OffsetPlan, ResetRequest, Strategy
from ottla.operations.offsets.resets import request_of
from ottla.operations.survey.connections import ClusterConnection


def list_groups(
    connection: ClusterConnection, *, with_lag: bool = True, contains: str = ""
) -> list[groups.GroupRow]:
    """Return the consumer groups by id, optionally only those whose id contains a text."""
    rows = groups.list_groups(connection, with_lag=with_lag)
    return [row for row in rows if contains in row.group_id]


def plan_offsets(
    connection: ClusterConnection,
    group_id: str,
    *,
    strategy: Strategy,
    topics: tuple[str, ...] = (),
    partitions: tuple[tuple[str, int], ...] = (),
    value: str = "",
    offsets: Mapping[Key, int] | None = None,
) -> OffsetPlan:
    """Return what a reset of offsets would do; changes nothing. `value` is the offset, the shift,
    the time in ms or the duration that the strategy needs.
    """
    request = _request(group_id, strategy, topics, partitions, value, offsets)
    return _plan(connection, request)


def reset_offsets(
    connection: ClusterConnection,
    group_id: str,
    *,
    strategy: Strategy,
    topics: tuple[str, ...] = (),
    partitions: tuple[tuple[str, int], ...] = (),
    value: str = "",
) -> Change:
    """Reset the committed offsets of a group without members, by a strategy of
    kafka-consumer-groups.
    """
    request = _request(group_id, strategy, topics, partitions, value, None)
    return offsets.execute(connection, _plan(connection, request))


def execute_offsets(connection: ClusterConnection, group_id: str, *, plan: OffsetPlan) -> Change:
    """Execute a plan of offsets exactly as it was shown; fails if offsets have changed since."""
    return offsets.execute(connection, _of_group(plan, group_id))


def undo_offsets(connection: ClusterConnection, group_id: str, *, plan: OffsetPlan) -> Change:
    """Restore the offsets from before an executed plan."""
    undo = offsets.plan_undo(connection, _of_group(plan, group_id))
    return offsets.execute(connection, undo)


def find_hanging(
    connection: ClusterConnection, *, topic: str | None = None, max_timeout_s: float = 900.0
) -> list[transactions.HangingTransaction]:
    """Return open transactions that no coordinator knows, which block read_committed consumers."""
    return transactions.find_hanging(connection, topic=topic, max_timeout_s=max_timeout_s)


def abort_hanging(
    connection: ClusterConnection, hanging: transactions.HangingTransaction
) -> Change:
    """Write an abort marker for a transaction that no coordinator knows, as kafka-transactions
    does; fails if the transaction does not hang.
    """
    transactions.check_hanging(connection, hanging)
    return transactions.abort_hanging(connection, hanging)


def _plan(connection: ClusterConnection, request: ResetRequest) -> OffsetPlan:
    return offsets.plan_reset(connection, request)


def _of_group(plan: OffsetPlan, group_id: str) -> OffsetPlan:
    return OffsetPlan(group_id, plan.strategy, plan.differences, plan.obstacle, plan.planned_at_ms)


def _request(
    group_id: str,
    strategy: Strategy,
    topics: tuple[str, ...],
    partitions: tuple[tuple[str, int], ...],
    value: str,
    targets: Mapping[Key, int] | None,
) -> ResetRequest:
    return request_of(
        group_id, strategy, value, topics=topics, partitions=partitions, offsets=targets or {}
    )


_GROUPS = f"{CLUSTER_PATH}/groups"
_GROUP = f"{_GROUPS}/{{group_id}}"
_TRANSACTIONS = f"{CLUSTER_PATH}/transactions"
_TRANSACTION = f"{_TRANSACTIONS}/{{transactional_id}}"

OPERATIONS = (
    Operation("GET", _GROUPS, Role.VIEWER, list_groups, "groups"),
    Operation("GET", _GROUP, Role.VIEWER, groups.describe_group, "groups"),
    Operation("DELETE", _GROUP, Role.EDITOR, groups.delete_group, "groups"),
    Operation("POST", f"{_GROUP}/remove-members", Role.EDITOR, groups.remove_members, "groups"),
    Operation(
        "POST", f"{_GROUP}/offsets/plan", Role.VIEWER, plan_offsets, "groups", is_dry_run=True
    ),
    Operation("POST", f"{_GROUP}/offsets/reset", Role.EDITOR, reset_offsets, "groups"),
    Operation("POST", f"{_GROUP}/offsets/execute", Role.EDITOR, execute_offsets, "groups"),
    Operation("POST", f"{_GROUP}/offsets/undo", Role.EDITOR, undo_offsets, "groups"),
    Operation("GET", _TRANSACTIONS, Role.VIEWER, transactions.list_transactions, "transactions"),
    Operation("GET", _TRANSACTION, Role.VIEWER, transactions.describe_transaction, "transactions"),
    Operation("POST", f"{_TRANSACTION}/abort", Role.ADMIN, transactions.abort_open, "transactions"),
    Operation(
        "GET", f"{CLUSTER_PATH}/hanging-transactions", Role.VIEWER, find_hanging, "transactions"
    ),
    Operation(
        "POST",
        f"{CLUSTER_PATH}/hanging-transactions/abort",
        Role.ADMIN,
        abort_hanging,
        "transactions",
    ),
)
