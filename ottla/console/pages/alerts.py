"""Alerts: incidents, rules, silences, channels, and the attempts to send."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ottla.base.errors import ConfigError
from ottla.console.accounts.roles import Role
from ottla.console.alerts import commands
from ottla.console.alerts.channels import (
    NO_SECRET,
    Channel,
    ChannelKind,
    MailSettings,
    Security,
)
from ottla.console.alerts.rules import KINDS, Rule, RuleKind, Severity
from ottla.console.alerts.store import AlertStore, IncidentRow
from ottla.console.fields import Fields
from ottla.console.page import Action, Done, Page, View
from ottla.operations.numbers import natural_number

_SHOWN = 200
_PORT_MAX = 65_535
_DELIVERIES = 20


def show(view: View) -> Mapping[str, Any]:
    """Return everything about alerts; channels and attempts to send for admins only.

    The query may name a rule or channel that is edited.
    """
    store = view.console.alerts.store
    is_admin = view.role is Role.ADMIN
    edited = view.query.text("edit-rule") if view.may(Role.EDITOR) else ""
    channel = view.query.text("edit-channel") if is_admin else ""
    return {
        "new_rule": Rule("", RuleKind.LAG),
        "edited": next((row for row in store.rules() if str(row.id) == edited), None),
        "edited_channel": next((row for row in store.channels() if str(row.id) == channel), None),
        "edited_mail": _mail_fields(store, channel),
        "open": _seen(view, store.incidents(is_open=True, limit=_SHOWN)),
        "ended": _seen(view, store.incidents(is_open=False, limit=_SHOWN)),
        "rules": store.rules(),
        "silences": commands.list_silences(view.console.alerts),
        "channels": store.channels() if view.role >= Role.EDITOR else [],
        "deliveries": store.deliveries(_DELIVERIES) if is_admin else [],
        "names": {stored.id: stored.rule.name for stored in store.rules()},
        "kinds": [(kind.value, facts) for kind, facts in KINDS.items()],
        "facts": {kind.value: facts for kind, facts in KINDS.items()},
        "severities": [item.value for item in Severity],
        "channel_kinds": [item.value for item in ChannelKind],
        "securities": [item.value for item in Security],
    }


def _seen(view: View, incidents: list[IncidentRow]) -> list[IncidentRow]:
    """Return the incidents of the clusters that the user may see."""
    seen = {name for name in {row.cluster for row in incidents} if view.may_see(name)}
    return [row for row in incidents if row.cluster in seen]


def add_rule(view: View) -> Done:
    """Add a rule."""
    rule = _rule(view.form)
    change = commands.add_rule(view.console.alerts, view.console.clusters, rule=rule)
    return Done(view.say("The rule {name} is added.", name=rule.name), change=change)


def change_rule(view: View) -> Done:
    """Replace a rule; it stays switched on or off."""
    form, console = view.form, view.console
    number = form.integer("rule")
    is_enabled = console.alerts.store.rule(number).is_enabled
    change = commands.change_rule(
        console.alerts,
        console.clusters,
        number,
        rule=replace(_rule(form), is_enabled=is_enabled),
        revision=form.integer("revision"),
    )
    sentence = view.say("The rule {name} is changed.", name=change.resource)
    return Done(sentence, "/alerts", change=change)


def switch_rule(view: View) -> Done:
    """Switch a rule on or off."""
    number, is_enabled = view.form.integer("rule"), view.form.is_checked("enabled")
    change = commands.set_rule_enabled(view.console.alerts, number, is_enabled=is_enabled)
    return Done(view.say("The rule {name} is changed.", name=change.resource), change=change)


def delete_rule(view: View) -> Done:
    """Delete a rule."""
    change = commands.delete_rule(view.console.alerts, view.form.integer("rule"))
    return Done(view.say("The rule {name} is deleted.", name=change.resource), change=change)


def add_silence(view: View) -> Done:
    """Hold back notifications for some time."""
    form = view.form
    change = commands.add_silence(
        view.console.alerts,
        view.console.clusters,
        view.actor.user,
        minutes=form.integer("minutes", least=1),
        rule_id=form.integer("rule") if form.text("rule") else None,
        cluster=form.text("silenced_cluster"),
        comment=form.text("comment"),
    )
    return Done(view.say("The silence begins."), change=change)


def delete_silence(view: View) -> Done:
    """End a silence."""
    change = commands.delete_silence(view.console.alerts, view.form.integer("silence"))
    return Done(view.say("The silence is over."), change=change)


def add_channel(view: View) -> Done:
    """Add a channel."""
    form = view.form
    channel = _channel(form)
    if channel.mail is None:
        form.required("url")
    change = commands.add_channel(view.console.alerts, channel=channel)
    return Done(view.say("The channel {name} is added.", name=channel.name), change=change)


def change_channel(view: View) -> Done:
    """Replace a channel; an empty URL, secret or password stays."""
    form = view.form
    channel = _channel(form)
    if form.is_checked("no_secret"):
        channel = replace(channel, secret=NO_SECRET)
    change = commands.change_channel(
        view.console.alerts,
        form.integer("channel"),
        channel=channel,
        revision=form.integer("revision"),
    )
    sentence = view.say("The channel {name} is changed.", name=change.resource)
    return Done(sentence, "/alerts", change=change)


def delete_channel(view: View) -> Done:
    """Delete a channel."""
    change = commands.delete_channel(view.console.alerts, view.form.integer("channel"))
    return Done(view.say("The channel {name} is deleted.", name=change.resource), change=change)


def test_channel(view: View) -> Done:
    """Send a test notification."""
    change = commands.test_channel(view.console.alerts, view.form.integer("channel"))
    sentence = view.say("A test notification is sent to {name}.", name=change.resource)
    return Done(sentence, change=change)


def _rule(form: Fields) -> Rule:
    return Rule(
        name=form.required("name"),
        kind=_option(RuleKind, form.text("kind"), "kind"),
        threshold=_number(form, "threshold"),
        cluster=form.text("cluster"),
        targets=form.text("targets"),
        for_s=form.integer("for_s", 60, least=0),
        repeat_s=form.integer("repeat_s", 3600, least=0),
        severity=_option(Severity, form.text("severity"), "severity"),
        channels=tuple(_channel_number(text) for text in form.all("channels")),
    )


def _channel(form: Fields) -> Channel:
    kind = _option(ChannelKind, form.text("channel_kind"), "channel_kind")
    name = form.required("channel_name")
    if kind is not ChannelKind.MAIL:
        return Channel(name, kind, form.text("url"), form.text("secret"))
    mail = MailSettings(
        host=form.required("host"),
        port=form.integer("port", 25, least=1, most=_PORT_MAX),
        security=_option(Security, form.text("security"), "security"),
        user=form.text("mail_user"),
        password=form.get("mail_password", ""),
        sender=form.required("sender"),
        recipients=tuple(form.required("recipients").replace(",", " ").split()),
    )
    return Channel(name, kind, mail=mail)


def _mail_fields(store: AlertStore, channel: str) -> Mapping[str, object]:
    """Return the fields of the form for a mail channel, without the password."""
    known = {str(row.id): row.id for row in store.channels()}
    mail = store.channel(known[channel]).mail if channel in known else None
    mail = mail or MailSettings("", port=587)
    return {
        "host": mail.host,
        "port": mail.port,
        "security": mail.security.value,
        "mail_user": mail.user,
        "sender": mail.sender,
        "recipients": ", ".join(mail.recipients),
    }


def _option(kind: Any, text: str, name: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        options = ", ".join(item.value for item in kind)
        raise ConfigError(f"unknown {name} {text!r}: use {options}") from None


def _number(form: Fields, name: str) -> float:
    text = form.text(name, "0")
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"field {name!r} is {text!r}: a number is needed") from None


def _channel_number(text: str) -> int:
    number = natural_number(text)
    if number is None:
        raise ConfigError(f"{text!r} is not the number of a channel: choose channels of the list")
    return number


PAGES = (
    Page(
        "/alerts",
        "alerts.html",
        show,
        "alerts",
        actions={
            "add-rule": Action(add_rule, "alert-rule.create", "name"),
            "change-rule": Action(change_rule, "alert-rule.change", "name"),
            "switch-rule": Action(switch_rule, "alert-rule.enable", "rule"),
            "delete-rule": Action(delete_rule, "alert-rule.delete", "rule"),
            "add-silence": Action(add_silence, "alert-silence.create", "rule"),
            "delete-silence": Action(delete_silence, "alert-silence.delete", "silence"),
            "add-channel": Action(add_channel, "alert-channel.create", "channel_name", Role.ADMIN),
            "change-channel": Action(
                change_channel, "alert-channel.change", "channel_name", Role.ADMIN
            ),
            "delete-channel": Action(delete_channel, "alert-channel.delete", "channel", Role.ADMIN),
            "test-channel": Action(test_channel, "alert-channel.test", "channel", Role.ADMIN),
        },
        is_global=True,
        refresh_s=5,
    ),
)
