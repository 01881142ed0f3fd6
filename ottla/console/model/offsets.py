"""Resets of a group's offsets, for pages and the REST API."""

from ottla.operations.changes import Change
from ottla.operations.offsets import resets
from ottla.operations.offsets.plans import OffsetPlan, ResetRequest
from ottla.operations.survey.connections import ClusterConnection


def plan_reset(connection: ClusterConnection, request: ResetRequest) -> OffsetPlan:
    """Return what a reset would do; changes nothing."""
    with connection.brokers() as brokers:
        return resets.plan_reset(brokers, request, connection.now_ms())


def execute(connection: ClusterConnection, plan: OffsetPlan) -> Change:
    """Commit the offsets of a plan; those whose `after` is None are deleted."""
    with connection.brokers() as brokers:
        change = resets.execute(brokers, plan, cluster=connection.name)
    connection.forget()
    return change


def plan_undo(connection: ClusterConnection, executed: OffsetPlan) -> OffsetPlan:
    """Return the plan that restores the offsets from before an executed plan."""
    with connection.brokers() as brokers:
        return resets.plan_undo(brokers, executed, connection.now_ms())
