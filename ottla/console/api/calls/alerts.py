"""Operations on alerts. URLs, secrets and passwords of channels are never returned."""

from ottla.console.accounts.roles import Role
from ottla.console.alerts import commands
from ottla.console.api.operations import Operation

_RULE, _CHANNEL = "/alerts/rules/{rule_id}", "/alerts/channels/{channel_id}"

OPERATIONS = (
    Operation("GET", "/alerts/incidents", Role.VIEWER, commands.list_incidents, "alerts"),
    Operation("GET", "/alerts/rules", Role.VIEWER, commands.list_rules, "alerts"),
    Operation("POST", "/alerts/rules", Role.EDITOR, commands.add_rule, "alerts"),
    Operation("PUT", _RULE, Role.EDITOR, commands.change_rule, "alerts"),
    Operation("PATCH", _RULE, Role.EDITOR, commands.set_rule_enabled, "alerts"),
    Operation("DELETE", _RULE, Role.EDITOR, commands.delete_rule, "alerts"),
    Operation("GET", "/alerts/silences", Role.VIEWER, commands.list_silences, "alerts"),
    Operation("POST", "/alerts/silences", Role.EDITOR, commands.add_silence, "alerts"),
    Operation(
        "DELETE", "/alerts/silences/{silence_id}", Role.EDITOR, commands.delete_silence, "alerts"
    ),
    Operation("GET", "/alerts/channels", Role.ADMIN, commands.list_channels, "alerts"),
    Operation("POST", "/alerts/channels", Role.ADMIN, commands.add_channel, "alerts"),
    Operation("PUT", _CHANNEL, Role.ADMIN, commands.change_channel, "alerts"),
    Operation("DELETE", _CHANNEL, Role.ADMIN, commands.delete_channel, "alerts"),
    Operation("POST", f"{_CHANNEL}/test", Role.ADMIN, commands.test_channel, "alerts"),
    Operation("GET", "/alerts/deliveries", Role.ADMIN, commands.list_deliveries, "alerts"),
)
