"""Reassignment of partitions: plan, preview, throttle, progress, cancel."""

from collections.abc import Mapping
from typing import Any

from ottla.base.errors import ConfigError
from ottla.console.accounts.roles import Role
from ottla.console.fields import Fields
from ottla.console.model.brokers import list_brokers
from ottla.console.model.reassignments import (
    Goal,
    ReassignmentPlan,
    ReassignmentRequest,
    cancel,
    change_throttle,
    list_running,
    plan_moves,
    read_throttle,
    remove_throttle,
)
from ottla.console.moves.throttled import start_moves
from ottla.console.page import Action, Done, Page, View
from ottla.operations.numbers import INT_MAX, natural_number
from ottla.operations.survey.metadata import Key

_MEBIBYTE = 1024 * 1024
_MAX_MOVES = 500


def show(view: View) -> Mapping[str, Any]:
    """Return running moves, throttles and the form of a plan."""
    number = view.form.text("plan")
    return {
        "running": list_running(view.cluster),
        "throttle": read_throttle(view.cluster),
        "brokers": list_brokers(view.cluster),
        "goals": list(Goal),
        "picked": view.form.all("broker"),
        "topics": view.form.text("topics") or view.query.text("topic"),
        # A plan whose start failed is shown again.
        "plan": view.console.plans.find(view.session.key, number, ReassignmentPlan),
        "plan_id": number,
        "max_moves": _MAX_MOVES,
    }


def preview(view: View) -> Done:
    """Show the moves, their bytes, and the balance before and after."""
    plan = plan_moves(view.cluster, _request(view.form))
    return Done(data={"plan": plan, "plan_id": view.console.plans.keep(view.session.key, plan)})


def start(view: View) -> Done:
    """Start the moves of the plan that was shown."""
    number = view.form.text("plan")
    plan = view.console.plans.get(view.session.key, number, ReassignmentPlan)
    limit = _bytes_per_s(view.form) if view.form.text("throttle") else None
    change = start_moves(view.cluster, view.console.throttled_moves, plan.moves, limit)
    count = len(plan.moves)
    sentence = view.say("{count} partitions are being moved.", count=count)
    if count == 1:
        sentence = view.say("One partition is being moved.")
    return Done(sentence, view.url("reassignments"), change)


def stop(view: View) -> Done:
    """Cancel one move, or all."""
    keys: list[Key] | None = None
    if view.form.text("topic"):
        keys = [(view.form.text("topic"), view.form.integer("partition", least=0, most=INT_MAX))]
    change = cancel(view.cluster, keys)
    return Done(view.say("The reassignment is cancelled."), change=change)


def limit(view: View) -> Done:
    """Change the throttle of running moves."""
    change = change_throttle(view.cluster, _bytes_per_s(view.form))
    return Done(view.say("The throttle is changed."), change=change)


def unlimit(view: View) -> Done:
    """Remove all throttles."""
    return Done(view.say("The throttles are removed."), change=remove_throttle(view.cluster))


def _request(form: Fields) -> ReassignmentRequest:
    try:
        goal = Goal(form.text("goal"))
    except ValueError:
        raise ConfigError(f"unknown goal {form.text('goal')!r}: use {', '.join(Goal)}") from None
    needs_factor = goal is Goal.REPLICATION_FACTOR
    return ReassignmentRequest(
        goal,
        topics=tuple(form.text("topics").replace(",", " ").split()),
        brokers=tuple(map(_broker, form.all("broker"))),
        replication_factor=form.integer("factor", least=1, most=INT_MAX) if needs_factor else None,
        targets=_targets(form.text("targets")) if goal is Goal.EXPLICIT else {},
    )


def _targets(text: str) -> dict[Key, tuple[int, ...]]:
    targets = {}
    for line in filter(str.strip, text.splitlines()):
        name, equals, brokers = line.partition("=")
        topic, dash, number = name.strip().rpartition("-")
        partition = natural_number(number, INT_MAX)
        if not (equals and dash) or partition is None:
            raise ConfigError(f"cannot read target {line.strip()!r}: write topic-0=1,2,3")
        targets[topic, partition] = tuple(map(_broker, brokers.replace(",", " ").split()))
    return targets


def _broker(text: str) -> int:
    number = natural_number(text, INT_MAX)
    if number is None:
        raise ConfigError(f"{text!r} is not the id of a broker: write 1,2,3")
    return number


def _bytes_per_s(form: Fields) -> int:
    text = form.required("throttle")
    try:
        mebibytes = float(text)
    except ValueError:
        raise ConfigError(f"throttle {text!r} is not a number of MiB per second") from None
    if not 0 < mebibytes < 1e9:
        raise ConfigError(f"throttle {text!r} is not a positive number of MiB per second")
    return round(mebibytes * _MEBIBYTE)


PAGES = (
    Page(
        "/reassignments",
        "reassignments.html",
        show,
        "brokers",
        actions={
            "preview": Action(preview, role=Role.ADMIN, is_preview=True),
            "start": Action(start, "partition.reassign", role=Role.ADMIN),
            "cancel": Action(stop, "partition.cancel-reassignment", "topic", Role.ADMIN),
            "throttle": Action(limit, "partition.change-throttle", role=Role.ADMIN),
            "unthrottle": Action(unlimit, "partition.remove-throttle", role=Role.ADMIN),
        },
        refresh_s=5,
    ),
)
