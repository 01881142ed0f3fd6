"""The operations of users on alerts, on the pages and through the API.

URLs, secrets and passwords of channels are never returned.
"""

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
from ottla.console.model.changes import Change
from ottla.console.model.connections import ClusterCatalogue

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
    after = {"kind": rule.kind.value, "threshold": f"{rule.threshold:g}", "targets": rule.targets}
    return Change(rule.cluster, "alert-rule.create", rule.name, {}, after)


def set_rule_enabled(alerts: Alerts, rule_id: int, *, is_enabled: bool) -> Change:
    """Switch an alert rule on or off; open incidents of a rule that is off end."""
    rule = alerts.store.rule(rule_id)
    alerts.store.set_enabled(rule_id, is_enabled)
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
