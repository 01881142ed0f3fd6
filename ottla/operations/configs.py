"""Changes of the options of topics, brokers, groups and subscriptions."""

from collections.abc import Iterable, Mapping, Sequence

from ottla.client.admin import configs
from ottla.client.admin.configs import ConfigEntry, Resource, ResourceType
from ottla.client.brokers import Brokers
from ottla.operations.changes import MASKED, Change, if_allowed

DEFAULT = "(default)"
"""The text of an option that has no value of its own."""


def alter(
    brokers: Brokers,
    resource: Resource,
    assign: Mapping[str, str],
    delete: Sequence[str] = (),
    *,
    known: tuple[Mapping[str, str], Mapping[str, str]] | None = None,
    cluster: str = "",
) -> Change:
    """Set some options and reset others, all or nothing; ApiError INVALID_CONFIG.

    `known` are the texts before and after, if the caller has planned the change; otherwise the
    present values are read.
    """
    before, after = known or texts(_entries(brokers, resource), assign, delete)
    configs.alter_config(brokers, resource, assign=assign, delete=delete)
    return Change(
        cluster,
        f"{_kind(resource)}.alter-config",
        resource.name or "all brokers",
        before=before,
        after=after,
    )


def _kind(resource: Resource) -> str:
    if resource.type is ResourceType.BROKER and not resource.name:
        return "cluster"
    return resource.type.name.lower().replace("_", "-")


def _entries(brokers: Brokers, resource: Resource) -> list[ConfigEntry]:
    return if_allowed(lambda: configs.describe_config(brokers, resource)) or []


def texts(
    rows: Iterable[ConfigEntry], assign: Mapping[str, str], delete: Sequence[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the texts of options before and after a change, from the present options. Pure.

    Values of sensitive and of unknown options are masked.
    """
    entries = {row.name: row for row in rows}
    before = {name: _text(entries[name]) for name in (*assign, *delete) if name in entries}
    after = {
        name: value if name in entries and not entries[name].is_sensitive else MASKED
        for name, value in assign.items()
    }
    return before, after | dict.fromkeys(delete, DEFAULT)


def _text(entry: ConfigEntry) -> str:
    if entry.is_sensitive:
        return MASKED
    return DEFAULT if entry.value is None else entry.value
