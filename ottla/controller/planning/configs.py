"""The result of changes to dynamic configuration. Pure; the checks run in Kafka's order.

An invalid topic setting is rejected with INVALID_CONFIG, an invalid broker setting with
INVALID_REQUEST, as in Kafka. Follows ConfigAdminManager and ConfigurationControlManager.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.base.loading import deferred_module
from ottla.base.options import Option, OptionType, Snapshot
from ottla.cluster.options import option_tables
from ottla.cluster.options.option_tables import BROKER_OPTIONS, TOPIC_OPTIONS
from ottla.cluster.options.security import tls_options
from ottla.controller.planning.requests import Alteration, ConfigChange

if TYPE_CHECKING:
    from ottla.cluster.options.security import names as security_names
else:
    # Only names that are not in the table need it.
    security_names = deferred_module("ottla.cluster.options.security.names")

# Apache Kafka has no limit.
_UNKNOWN_MAX = 1000


def alter_topic(
    current: Mapping[str, str], changes: tuple[ConfigChange, ...], broker: Snapshot
) -> dict[str, str]:
    """Return a topic's settings after `changes`; ApiError if a change is not valid."""
    _check_changes(changes)
    for change in changes:
        if change.alteration is not Alteration.DELETE and change.name not in TOPIC_OPTIONS.rows:
            raise _unknown(
                ErrorCode.INVALID_CONFIG, "topic config", change.name, TOPIC_OPTIONS.rows
            )
    defaults = {
        change.name: _rendered(row, option_tables.topic_default(broker, change.name))
        for change in changes
        if (row := TOPIC_OPTIONS.rows.get(change.name)) is not None
    }
    altered = _altered(current, changes, TOPIC_OPTIONS.rows, defaults)
    check_topic(altered, broker)
    return altered


def check_topic(settings: Mapping[str, str | None], broker: Snapshot) -> None:
    """Raise ApiError INVALID_CONFIG, with the reason, unless these settings are valid for a topic."""
    empty = [name for name, value in settings.items() if value is None]
    if empty:
        raise ApiError(
            ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {empty[0]}"
        )
    for name in settings:
        if name not in TOPIC_OPTIONS.rows:
            raise _unknown(ErrorCode.INVALID_CONFIG, "topic config", name, TOPIC_OPTIONS.rows)
    try:
        option_tables.check_topic_settings(
            broker, {name: value or "" for name, value in settings.items()}
        )
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error


def alter_broker(
    current: Mapping[str, str], changes: tuple[ConfigChange, ...], broker: Snapshot
) -> dict[str, str]:
    """Return a broker's dynamic settings after `changes`, or raise ApiError INVALID_REQUEST.

    An option that brokers do not know is stored, as in Kafka, except for a misspelt option of
    security.
    """
    _check_changes(changes)
    rows = BROKER_OPTIONS.rows | _rows_of_listeners(changes)
    for change in changes:
        row = rows.get(change.name)
        is_new = row is None and change.alteration is not Alteration.DELETE
        if is_new and security_names.is_security_option(change.name, rows):
            refusal = security_names.refusal(change.name, rows)
            raise ApiError(ErrorCode.INVALID_REQUEST, str(refusal))
        if row is not None and not row.dynamic:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"{change.name} cannot be changed while the broker runs: set it at the start",
            )
    defaults = {
        change.name: _rendered(rows[change.name], broker[change.name])
        for change in changes
        if change.name in BROKER_OPTIONS.rows
    }
    altered = _altered(current, changes, rows, defaults)
    if sum(name not in rows for name in altered) > _UNKNOWN_MAX:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"A broker has more than {_UNKNOWN_MAX} options that brokers do not know: delete some.",
        )
    try:
        own = BROKER_OPTIONS.parse(
            {name: text for name, text in altered.items() if name in BROKER_OPTIONS.rows}
        )
        others = {name: value for name, value in broker.explicit.items() if name not in current}
        option_tables.check_connections(Snapshot(BROKER_OPTIONS, {**others, **own.explicit}))
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from error
    return altered


def _rows_of_listeners(changes: tuple[ConfigChange, ...]) -> dict[str, Option]:
    """Return the rows of options of single listeners; the broker has checked that they exist."""
    found = {change.name: tls_options.dynamic_row(change.name) for change in changes}
    return {name: row for name, row in found.items() if row is not None}


def alter_plain(current: Mapping[str, str], changes: tuple[ConfigChange, ...]) -> dict[str, str]:
    """Return the settings of a quota or a metrics subscription after `changes`.

    The values have been validated before. APPEND and SUBTRACT raise ApiError INVALID_CONFIG, as in
    Kafka.
    """
    _check_changes(changes)
    for change in changes:
        if change.alteration not in (Alteration.SET, Alteration.DELETE):
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"{change.name} has no items: {change.alteration.name} has no meaning for it",
            )
    return _altered(current, changes, {}, {})


def _check_changes(changes: tuple[ConfigChange, ...]) -> None:
    names = [change.name for change in changes]
    if len(set(names)) < len(names):
        raise ApiError(ErrorCode.INVALID_REQUEST, "A configuration key is named twice")
    for change in changes:
        if change.value is None and change.alteration is not Alteration.DELETE:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"Null value not supported for: {change.name}"
            )


def _unknown(code: ErrorCode, kind: str, name: str, rows: Mapping[str, Option]) -> ApiError:
    suggestion = security_names.nearest(name, rows)
    hint = f"; did you mean {suggestion}?" if suggestion else ""
    return ApiError(code, f"Unknown {kind} name: {name}{hint}")


def _rendered(row: Option, value: object) -> str:
    return row.render(value) or ""


def _altered(
    current: Mapping[str, str],
    changes: tuple[ConfigChange, ...],
    rows: Mapping[str, Option],
    defaults: Mapping[str, str],
) -> dict[str, str]:
    altered = dict(current)
    for change in changes:
        if change.alteration is Alteration.DELETE:
            altered.pop(change.name, None)
        elif change.alteration is Alteration.SET:
            # Leading and trailing blanks are not part of a value.
            altered[change.name] = (change.value or "").strip()
        else:
            row = rows.get(change.name)
            if row is None or row.type is not OptionType.LIST:
                raise ApiError(
                    ErrorCode.INVALID_CONFIG,
                    f"{change.name} is not a list: {change.alteration.name} has no meaning for it",
                )
            base = _items(altered.get(change.name, defaults[change.name]))
            altered[change.name] = ",".join(_combined(base, change))
    return altered


def _combined(base: list[str], change: ConfigChange) -> list[str]:
    entries = _items(change.value or "")
    if change.alteration is Alteration.SUBTRACT:
        return [item for item in base if item not in entries]
    return base + [item for item in dict.fromkeys(entries) if item not in base]


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]
