"""Consumer groups: the list, and a group with members, partitions and lag."""

from collections.abc import Mapping
from typing import Any

from ottla.console.formats import duration, number
from ottla.console.history.points import Kind
from ottla.console.model.groups import (
    GroupRow,
    delete_group,
    describe_group,
    list_groups,
    remove_members,
    topology_of,
)
from ottla.console.page import Action, Done, Page, Source, View
from ottla.console.pages.history import history_of
from ottla.console.streams.drawing import draw_readers
from ottla.console.tables import arrange

# A drawing of more members is no longer legible; the table has all.
_DRAWN = 40

_SORTS = {
    "name": lambda row: row.group_id,
    "state": lambda row: row.state,
    "members": lambda row: row.members,
    "lag": lambda row: row.lag,
}


def show_groups(view: View) -> Mapping[str, Any]:
    """Return the groups that the query selects."""
    state = view.query.text("state")
    rows = list_groups(view.cluster, with_lag=True)
    states = sorted({row.state for row in rows})
    if state:
        rows = [row for row in rows if row.state == state]
    return {**arrange(rows, view.query, _SORTS, _text), "state": state, "states": states}


def show_group(view: View) -> Mapping[str, Any]:
    """Return a group."""
    detail = describe_group(view.cluster, group_of(view))
    return {
        "group": detail,
        "topics": sorted({row.topic for row in detail.partitions}),
        "readers": draw_readers(topology_of(detail)) if 0 < len(detail.members) <= _DRAWN else None,
        "forecast": _forecast(view),
        **history_of(view, Kind.GROUP, group_of(view)),
    }


def read_lag(view: View) -> Mapping[str, Any]:
    """Return the lag of a group for its chart."""
    is_time = view.query.text("unit") == "s"
    detail = describe_group(view.cluster, group_of(view), with_seconds=is_time)
    values: dict[str, float | None] = {view.say("lag (records)"): detail.lag}
    if is_time:
        values = {view.say("lag (s)"): detail.lag_s}
    return {"at_ms": view.cluster.now_ms(), "values": values}


def remove(view: View) -> Done:
    """Remove all members; running consumers rejoin."""
    reason = f"removed by {view.actor.user} in the console"
    change = remove_members(view.cluster, group_of(view), reason=reason)
    return Done(view.say("The members are removed."), change=change)


def delete(view: View) -> Done:
    """Delete a group whose id was typed."""
    name = group_of(view)
    change = delete_group(view.cluster, name, confirmation=view.form.get("confirmation", ""))
    return Done(view.say("Group {name} is deleted.", name=name), view.url("groups"), change)


def group_of(view: View) -> str:
    """Return the id in the query: it may contain any character, so that it is no part of the path."""
    return view.query.get("id", "")


def _forecast(view: View) -> str:
    """Return the forecast as a sentence."""
    now_ms = view.cluster.now_ms()
    forecast = view.console.history.forecast(view.cluster.name, group_of(view), now_ms)
    if forecast.caught_up_at_ms is not None:
        return view.say("in {time}", time=duration((forecast.caught_up_at_ms - now_ms) / 1000))
    rate = number(round(abs(forecast.records_per_s or 0), 2))
    return {
        "caught-up": view.say("caught up"),
        "falling-behind": view.say("never: the lag grows by {rate}/s", rate=rate),
        "steady": view.say("never at this rate"),
    }.get(forecast.verdict, "–")


def _text(row: GroupRow) -> str:
    return f"{row.group_id} {' '.join(row.topics)}"


PAGES = (
    Page("/groups", "groups.html", show_groups, "groups", refresh_s=5),
    Page(
        "/group",
        "group.html",
        show_group,
        "groups",
        actions={
            "remove": Action(remove, "group.remove-members", "id"),
            "delete": Action(delete, "group.delete", "id"),
        },
        refresh_s=5,
    ),
)
SOURCES = (Source("/group/lag.json", read_lag),)
