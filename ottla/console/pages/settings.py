"""Settings of a topic or a broker: the table of options, and a change with its preview."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ottla.console.accounts.roles import Role
from ottla.console.model.configs import (
    ConfigKind,
    ConfigResource,
    ConfigRow,
    alter_config,
    describe_config,
    plan_change,
)
from ottla.console.page import Action, Done, View

ResourceOf = Callable[[View], ConfigResource]
# The parameters of the addresses that name the resource, for the audit log.
_TARGETS = {ConfigKind.TOPIC: "topic", ConfigKind.BROKER: "node", ConfigKind.CLUSTER: ""}


def settings_table(view: View, rows: Sequence[ConfigRow]) -> dict[str, Any]:
    """Return the options that the query selects, and the one that is being edited."""
    text = view.query.text("q").lower()
    only_changed = view.query.is_checked("changed")
    name = view.form.text("name") or view.query.text("edit")
    return {
        "options": [
            row
            for row in rows
            if text in f"{row.name} {row.documentation}".lower()
            and not (only_changed and row.is_default)
        ],
        "edited": next((row for row in rows if row.name == name), None),
        "q": view.query.text("q"),
        "only_changed": only_changed,
        "plan": None,
    }


def change_actions(kind: ConfigKind, resource_of: ResourceOf, role: Role) -> Mapping[str, Action]:
    """Return the actions of a settings page: preview, set, reset."""
    action, target = f"{kind}.alter-config", _TARGETS[kind]

    def preview(view: View) -> Done:
        resource = resource_of(view)
        plan = plan_change(view.cluster, resource, assign={_name(view): _value(view)})
        return Done(data={"plan": plan})

    def assign(view: View) -> Done:
        resource, name = resource_of(view), _name(view)
        _check_seen(view, resource)
        change = alter_config(view.cluster, resource, assign={name: _value(view)})
        sentence = view.say("{name} is set to {value}.", name=name, value=_value(view))
        return Done(sentence, _plain_page(view), change)

    def reset(view: View) -> Done:
        resource, name = resource_of(view), _name(view)
        change = alter_config(view.cluster, resource, delete=[name])
        sentence = view.say("{name} has its default again.", name=name)
        return Done(sentence, _plain_page(view), change)

    return {
        "preview": Action(preview, role=role, is_preview=True),
        "set": Action(assign, action, target, role),
        "reset": Action(reset, action, target, role),
    }


def _check_seen(view: View, resource: ConfigResource) -> None:
    """Refuse a change of a value that another user has changed since the form was shown."""
    if "seen" not in view.form:
        return
    name = _name(view)
    for row in describe_config(view.cluster, resource):
        if row.name == name and (row.value or "") != view.form["seen"]:
            raise OptionChanged(
                view.say(
                    "{name} was changed to {value} after this page was shown: check it and save"
                    " again.",
                    name=name,
                    value=row.value or "",
                )
            )


class OptionChanged(ValueError):
    """Another user has changed the option since the page was shown."""


def _name(view: View) -> str:
    return view.form.required("name")


def _value(view: View) -> str:
    return view.form.get("value", "").strip()


def _plain_page(view: View) -> str:
    return view.here_with(edit="")
