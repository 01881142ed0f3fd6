"""Subscriptions to metrics of clients: their settings, and the clients they apply to. Pure.

A subscription is a config resource of type 16: `metrics` are prefixes of names (`*` for all),
`match` are regular expressions of RE2, all of which a client must match. Follows
org.apache.kafka.server.metrics.ClientMetricsConfigs and ClientMetricsInstanceMetadata, which use
java.util.regex: look-around and back references are refused.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.base.loading import deferred_module
from ottla.base.options import OptionType
from ottla.cluster.options.client_metrics_options import CLIENT_METRICS_OPTIONS

if TYPE_CHECKING:
    from ottla.base.text import patterns
else:
    # Only subscriptions with patterns need it.
    patterns = deferred_module("ottla.base.text.patterns")

ALL_METRICS = "*"
_METRICS, _INTERVAL, _MATCH = "metrics", "interval.ms", "match"
# The attributes of a client that patterns can match.
ATTRIBUTES = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
# Longer attributes match nothing: clients choose them.
_ATTRIBUTE_MAX = 256


class Subscription(NamedTuple):
    """The metrics that matching clients shall push."""

    metrics: tuple[str, ...]
    interval_ms: int
    match: Mapping[str, "patterns.Pattern"]

    def is_for(self, attributes: Mapping[str, str | None]) -> bool:
        """Return True if a client with these attributes matches; without patterns all clients do."""
        return all(_matches(pattern, attributes.get(name)) for name, pattern in self.match.items())


def check(name: str, settings: Mapping[str, str]) -> None:
    """Raise ApiError INVALID_REQUEST or INVALID_CONFIG if the settings are invalid."""
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "The name of a subscription must not be empty.")
    for key, text in settings.items():
        row = CLIENT_METRICS_OPTIONS.rows.get(key)
        if row is None:
            names = ", ".join(CLIENT_METRICS_OPTIONS.rows)
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"Unknown setting {key} of client metrics: {names}."
            )
        try:
            row.parse(text)
        except ConfigError as error:
            # A number is out of range, any other text is of the wrong type.
            is_number = row.type is OptionType.INT and text.strip().lstrip("+-").isdecimal()
            code = ErrorCode.INVALID_REQUEST if is_number else ErrorCode.INVALID_CONFIG
            raise ApiError(code, str(error)) from error
    _patterns(settings.get(_MATCH, ""))


def subscription_of(settings: Mapping[str, str]) -> Subscription:
    """Parse settings that have been checked."""
    values = CLIENT_METRICS_OPTIONS.parse(settings)
    return Subscription(
        tuple(values.strings(_METRICS)),
        values.integer(_INTERVAL),
        _patterns(settings.get(_MATCH, "")),
    )


def _patterns(text: str) -> "dict[str, patterns.Pattern]":
    match: dict[str, patterns.Pattern] = {}
    for pattern_text in filter(None, (part.strip() for part in text.split(","))):
        name, _, expression = (part.strip() for part in pattern_text.partition("="))
        try:
            if name not in ATTRIBUTES or not expression or "=" in expression:
                raise ValueError(pattern_text)
            match[name] = patterns.compiled(expression)
        except ValueError as error:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"Invalid pattern {pattern_text} of {_MATCH}: it must be attribute=expression, with one of "
                f"{', '.join(ATTRIBUTES)}.",
            ) from error
    return match


def _matches(pattern: "patterns.Pattern", attribute: str | None) -> bool:
    if attribute is None or len(attribute) > _ATTRIBUTE_MAX:
        return False
    return pattern.fullmatch(attribute) is not None
