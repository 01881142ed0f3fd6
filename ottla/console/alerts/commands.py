"""The operations of users on alerts, on the pages and through the API.

URLs, secrets and passwords of channels are never returned.
"""

from dataclasses import replace

from ottla.base.errors import ConfigError
from ottla.console.alerts.alerting import Alerts
from ottla.console.alerts.channels import Channel
from ottla.console.alerts.evaluation import Silence
from ottla.console.alerts.rules import Rule
from ottla.console.alerts.store import (
    ChannelRow,
    Delivery,
    IncidentRow,
    StoredRule,
    StoredSilence,
)
from ottla.console.catalogue import ClusterCatalogue
from ottla.operations.changes import Change

_HISTORY_MAX = 1000
MINUTES_MAX = 7 * 24 * 60


def list_incidents(alerts: Alerts, *, is_open: bool | None = None) -> list[IncidentRow]:
    """Return the newest 1000 incidents, optionally only those that are open, or that have ended."""
    return alerts.store.incidents(is_open=is_open, limit=_HISTORY_MAX)


def list_rules(alerts: Alerts) -> list[StoredRule]:
    """Return the alert rules."""
    return alerts.store.rules()


def add_rule(alerts: Alerts, catalogue: ClusterCatalogue, *, rule: Rule) -> Change:
    """Add an alert rule."""
    if rule.cluster:
        catalogue.get(rule.cluster)
    alerts.store.add_rule(rule)
    alerts.configure()
    return Change(rule.cluster, "alert-rule.create", rule.name, {}, _facts(rule))


def change_rule(
    alerts: Alerts,
    catalogue: ClusterCatalogue,
    rule_id: int,
    *,
    rule: Rule,
    revision: int | None = None,
) -> Change:
    """Replace an alert rule. Open incidents end if the rule is no longer about them.

    With a `revision` only if no other user has changed the rule since then.
    """
    if rule.cluster:
        catalogue.get(rule.cluster)
    old = _facts(alerts.store.change_rule(rule_id, rule, revision))
    alerts.configure()
    new = _facts(rule)
    changed = [name for name in new if new[name] != old[name]]
    before, after = ({name: facts[name] for name in changed} for facts in (old, new))
    return Change(rule.cluster, "alert-rule.change", rule.name, before, after)


def set_rule_enabled(alerts: Alerts, rule_id: int, *, is_enabled: bool) -> Change:
    """Switch an alert rule on or off; open incidents of a rule that is off end."""
    rule = alerts.store.rule(rule_id)
    alerts.store.change_rule(rule_id, replace(rule, is_enabled=is_enabled))
    alerts.configure()
    before, after = {"enabled": str(rule.is_enabled)}, {"enabled": str(is_enabled)}
    return Change(rule.cluster, "alert-rule.enable", rule.name, before, after)


def delete_rule(alerts: Alerts, rule_id: int) -> Change:
    """Delete an alert rule; its open incidents end."""
    rule = alerts.store.delete_rule(rule_id)
    alerts.configure()
    return Change(rule.cluster, "alert-rule.delete", rule.name)


def list_silences(alerts: Alerts) -> list[StoredSilence]:
    """Return the silences that are not over."""
    return alerts.store.silences(alerts.now_ms())


def add_silence(
    alerts: Alerts,
    catalogue: ClusterCatalogue,
    caller: str,
    *,
    minutes: int,
    rule_id: int | None = None,
    cluster: str = "",
    comment: str = "",
) -> Change:
    """Hold back notifications for some minutes: of a rule or of all, of a cluster or of all."""
    if not 1 <= minutes <= MINUTES_MAX:
        raise ConfigError(f"minutes is {minutes}: use 1 to {MINUTES_MAX}")
    if cluster:
        catalogue.get(cluster)
    silence = Silence(rule_id, cluster, alerts.now_ms() + minutes * 60_000)
    alerts.store.add_silence(silence, caller, comment)
    alerts.configure()
    name = "all rules" if rule_id is None else alerts.store.rule(rule_id).name
    after = {"minutes": str(minutes), "comment": comment}
    return Change(cluster, "alert-silence.create", name, {}, after)


def delete_silence(alerts: Alerts, silence_id: int) -> Change:
    """End a silence."""
    alerts.store.delete_silence(silence_id)
    alerts.configure()
    return Change("", "alert-silence.delete", str(silence_id))


def list_channels(alerts: Alerts) -> list[ChannelRow]:
    """Return the channels of alerts, without their URLs and secrets."""
    return alerts.store.channels()


def add_channel(alerts: Alerts, *, channel: Channel) -> Change:
    """Add a channel; its URL, secret and password are never returned."""
    alerts.store.add_channel(channel)
    after = {"kind": channel.kind.value, "destination": channel.destination}
    return Change("", "alert-channel.create", channel.name, {}, after)


def change_channel(
    alerts: Alerts, channel_id: int, *, channel: Channel, revision: int | None = None
) -> Change:
    """Replace a channel. An empty URL, secret or password stays as it was; "-" removes a secret.

    A password does not stay if the mail server changes. With a `revision` only if no other user has
    changed the channel since then.
    """
    old, new = alerts.store.change_channel(channel_id, channel, revision)
    before, after = {"destination": old.destination}, {"destination": new.destination}
    if old.name != new.name:
        before, after = {**before, "name": old.name}, {**after, "name": new.name}
    secrets = ("url", "secret")
    is_changed = any(getattr(old, name) != getattr(new, name) for name in secrets)
    notes = ("secrets changed",) if is_changed or _password(old) != _password(new) else ()
    return Change("", "alert-channel.change", new.name, before, after, notes)


def delete_channel(alerts: Alerts, channel_id: int) -> Change:
    """Delete a channel that no rule uses."""
    name = alerts.store.channel(channel_id).name
    alerts.store.delete_channel(channel_id)
    return Change("", "alert-channel.delete", name)


def test_channel(alerts: Alerts, channel_id: int) -> Change:
    """Send a test notification to a channel."""
    name = alerts.store.channel(channel_id).name
    alerts.test(channel_id)
    return Change("", "alert-channel.test", name)


def list_deliveries(alerts: Alerts) -> list[Delivery]:
    """Return the newest 1000 attempts to send a notification, with their results."""
    return alerts.store.deliveries(_HISTORY_MAX)


def _facts(rule: Rule) -> dict[str, str]:
    """Return the values of a rule for the audit log."""
    return {
        "name": rule.name,
        "kind": rule.kind.value,
        "threshold": f"{rule.threshold:g}",
        "cluster": rule.cluster,
        "targets": rule.targets,
        "for_s": str(rule.for_s),
        "repeat_s": str(rule.repeat_s),
        "severity": rule.severity.value,
        "channels": ",".join(map(str, rule.channels)),
        "enabled": str(rule.is_enabled),
    }


def _password(channel: Channel) -> str:
    return channel.mail.password if channel.mail is not None else ""
