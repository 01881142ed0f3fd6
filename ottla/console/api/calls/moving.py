"""Operations on reassignments of partitions."""

from ottla.console.accounts.roles import Role
from ottla.console.api.operations import CLUSTER_PATH, Operation
from ottla.console.model import reassignments
from ottla.console.model.reassignments import Move
from ottla.console.moves.throttled import ThrottledMoves, start_moves
from ottla.operations.changes import Change
from ottla.operations.survey.connections import ClusterConnection


def plan_reassignment(
    connection: ClusterConnection, *, request: reassignments.ReassignmentRequest
) -> reassignments.ReassignmentPlan:
    """Return what a reassignment would move, its bytes, and the balance before and after."""
    return reassignments.plan_moves(connection, request)


def start_reassignment(
    connection: ClusterConnection,
    throttled_moves: ThrottledMoves,
    *,
    moves: tuple[Move, ...],
    throttle_bytes_per_s: int | None = None,
) -> Change:
    """Start the moves of a plan, optionally with a throttle; fails if replicas have changed since.

    The console removes the throttle when no move runs any longer.
    """
    return start_moves(connection, throttled_moves, moves, throttle_bytes_per_s)


def list_reassignments(connection: ClusterConnection) -> list[reassignments.RunningMove]:
    """Return the reassignments in progress with the bytes that have been copied."""
    return reassignments.list_running(connection)


def cancel_reassignments(
    connection: ClusterConnection, *, partitions: tuple[tuple[str, int], ...] | None = None
) -> Change:
    """Cancel reassignments, all of them by default; the original replicas remain."""
    return reassignments.cancel(connection, partitions)


_BASE = f"{CLUSTER_PATH}/reassignments"
_THROTTLE = f"{CLUSTER_PATH}/throttle"
_TAG = "reassignments"

OPERATIONS = (
    Operation("GET", _BASE, Role.VIEWER, list_reassignments, _TAG),
    Operation("POST", f"{_BASE}/plan", Role.VIEWER, plan_reassignment, _TAG, is_dry_run=True),
    Operation("POST", _BASE, Role.ADMIN, start_reassignment, _TAG),
    Operation("POST", f"{_BASE}/cancel", Role.ADMIN, cancel_reassignments, _TAG),
    Operation("GET", _THROTTLE, Role.VIEWER, reassignments.read_throttle, _TAG),
    Operation("PUT", _THROTTLE, Role.ADMIN, reassignments.change_throttle, _TAG),
    Operation("DELETE", _THROTTLE, Role.ADMIN, reassignments.remove_throttle, _TAG),
)
