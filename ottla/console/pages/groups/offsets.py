"""The offsets of a group: a plan by any strategy, its difference, its execution, its undo."""

from collections.abc import Mapping
from typing import Any

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.console.fields import Fields
from ottla.console.model.groups import GroupDetail, describe_group
from ottla.console.model.offsets import execute, plan_reset, plan_undo
from ottla.console.page import Action, Done, Download, Page, Source, View
from ottla.console.pages.groups.groups import group_of
from ottla.console.pages.topics.messages import ZONE, parse_time
from ottla.operations.numbers import INT_MAX, natural_number
from ottla.operations.offsets.files import parse_offsets, to_csv
from ottla.operations.offsets.plans import Key, OffsetPlan, ResetRequest, Strategy
from ottla.operations.offsets.resets import request_of

# A field for each partition: `at:TOPIC:PARTITION` has a new offset, `pick` a selected partition.
_NEW_OFFSET = "at:"


def show(view: View) -> Mapping[str, Any]:
    """Return the offsets of a group and the form; with `done`, a plan that can be undone."""
    return {
        "group": _group(view),
        "picked": view.form.all("pick"),
        "plan": None,
        "plan_id": "",
        "csv": "",
        "undo_id": view.query.text("done"),
    }


def _group(view: View) -> GroupDetail:
    """Return the group; one without partitions if an executed plan deleted its last offset."""
    name, number = group_of(view), view.query.text("done")
    try:
        return describe_group(view.cluster, name, with_seconds=False)
    except ApiError as error:
        executed = view.console.plans.find(view.session.key, number, OffsetPlan)
        is_undoable = executed is not None and executed.group_id == name
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND or not is_undoable:
            raise
        return GroupDetail(name, "Dead", "", "", "", -1, (), (), None, None)


def preview(view: View) -> Done:
    """Show the difference that a reset would make."""
    return _shown(view, plan_reset(view.cluster, _request(view)))


def preview_undo(view: View) -> Done:
    """Show the difference that restores the offsets from before an executed plan."""
    executed = view.console.plans.get(view.session.key, view.form.text("plan"), OffsetPlan)
    return _shown(view, plan_undo(view.cluster, executed))


def run(view: View) -> Done:
    """Execute the plan that was shown."""
    number = view.form.text("plan")
    plan = view.console.plans.get(view.session.key, number, OffsetPlan)
    if plan.group_id != group_of(view):
        raise ConfigError("this plan is for another group: make it again")
    change = execute(view.cluster, plan)
    location = view.url("group", "offsets", id=plan.group_id, done=number)
    return Done(view.say("The offsets are changed."), location, change)


def download(view: View) -> Download:
    """Return the committed offsets as kafka-consumer-groups exports them."""
    group_id = group_of(view)
    request = ResetRequest(group_id, Strategy.TO_CURRENT)
    text = to_csv(plan_reset(view.cluster, request).differences)
    return Download(f"{group_id}.csv", "text/csv; charset=utf-8", [text.encode()])


def _shown(view: View, plan: OffsetPlan) -> Done:
    number = view.console.plans.keep(view.session.key, plan)
    return Done(data={"plan": plan, "plan_id": number, "csv": to_csv(plan.differences)})


def _request(view: View) -> ResetRequest:
    form = view.form
    try:
        strategy = Strategy(form.text("strategy"))
    except ValueError:
        raise ConfigError(
            f"unknown strategy {form.text('strategy')!r}: use {', '.join(Strategy)}"
        ) from None
    value: object = ""
    offsets: Mapping[Key, int] = {}
    match strategy:
        case Strategy.TO_OFFSET:
            value = form.integer("offset", least=0)
        case Strategy.SHIFT_BY:
            value = form.integer("shift")
        case Strategy.TO_DATETIME:
            value = parse_time(form.required("time"), form.text(ZONE, "UTC"))
        case Strategy.BY_DURATION:
            value = form.required("duration")
        case Strategy.FROM_FILE:
            offsets = {**parse_offsets(form.get("file", "")), **_typed(form)}
    return request_of(
        group_of(view),
        strategy,
        str(value),
        topics=tuple(form.text("topics").replace(",", " ").split()),
        partitions=tuple(_key(text) for text in form.all("pick")),
        offsets=offsets,
    )


def _typed(form: Fields) -> dict[Key, int]:
    names = [name for name in form if name.startswith(_NEW_OFFSET) and form.text(name)]
    return {_key(name.removeprefix(_NEW_OFFSET)): form.integer(name, least=0) for name in names}


def _key(text: str) -> Key:
    topic, _, number = text.rpartition(":")
    partition = natural_number(number, INT_MAX)
    if partition is None:
        raise ConfigError(f"{text!r} is not a topic and a partition: write orders:0")
    return topic, partition


PAGES = (
    Page(
        "/group/offsets",
        "offsets.html",
        show,
        "groups",
        actions={
            "preview": Action(preview, is_preview=True),
            "preview-undo": Action(preview_undo, is_preview=True),
            "execute": Action(run, "group.reset-offsets", "id"),
        },
    ),
)
SOURCES = (Source("/group/offsets.csv", download),)
