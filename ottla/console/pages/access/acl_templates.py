"""The ACLs that a consumer, a producer or a transactional application needs, made in one step.

They are those of `kafka-acls --consumer`, `--producer` and `--producer --transactional-id`.
"""

from collections.abc import Mapping
from typing import Any

from ottla.base.errors import ConfigError
from ottla.client.admin.acls import AclBinding, PatternType, ResourceType
from ottla.console.fields import Fields
from ottla.console.page import Done, View
from ottla.operations.access.changes import add_entries
from ottla.operations.access.entries import check_addable, divided, entries_to_add, word_of
from ottla.operations.access.patterns import AclRequest
from ottla.operations.changes import Change

TEMPLATES = ("consumer", "producer", "transactional")
_PATTERNS = {"literal": PatternType.LITERAL, "prefixed": PatternType.PREFIXED}


def show_template(view: View) -> Done:
    """Show the ACLs of a template, and which of them exist already."""
    present, missing = _divided(view)
    return Done(data={"template_rows": [*_rows(present, True), *_rows(missing, False)]})


def add_template(view: View) -> Done:
    """Create the ACLs of a template that do not exist yet."""
    _, missing = _divided(view)
    if not missing:
        return Done(view.say("These ACLs exist already."))
    name = view.cluster.name
    with view.cluster.brokers() as brokers:
        add_entries(brokers, missing, cluster=name)
    after = {
        f"{word_of(pattern.resource_type)} {pattern.name} {word_of(entry.operation)}": (
            f"{word_of(entry.permission_type)} from {entry.host} ({word_of(pattern.pattern_type)})"
        )
        for pattern, entry in missing
    }
    change = Change(name, "acl.create", view.form.text("principal"), after=after)
    return Done(view.say("{count} ACLs are created.", count=len(missing)), change=change)


def bindings_of(form: Fields) -> list[AclBinding]:
    """Return the entries of the form; ConfigError names a value that is missing or wrong. Pure."""
    template, pattern = form.required("template"), form.text("pattern_type", "literal")
    if template not in TEMPLATES:
        raise ConfigError(f"unknown template {template!r}: use {', '.join(TEMPLATES)}")
    if pattern not in _PATTERNS:
        raise ConfigError(f"unknown pattern {pattern!r}: use {', '.join(_PATTERNS)}")
    resources = [(ResourceType.TOPIC, name) for name in form.required("topics").split()]
    groups = form.text("groups").split()
    if template == "consumer":
        groups = form.required("groups").split()
    resources += [(ResourceType.GROUP, name) for name in groups]
    if template == "transactional":
        names = form.required("transactional_ids").split()
        resources += [(ResourceType.TRANSACTIONAL_ID, name) for name in names]
    request = AclRequest(
        tuple(resources),
        _PATTERNS[pattern],
        allow_principals=(form.required("principal"),),
        allow_hosts=(form.text("host", "*"),),
        is_for_producer=template != "consumer",
        # An application that commits the offsets of a group in its transactions reads it, too.
        is_for_consumer=template != "producer" and bool(groups),
    )
    try:
        entries = entries_to_add(request)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    bindings = [AclBinding(pattern, entry) for pattern, rows in entries.items() for entry in rows]
    for binding in bindings:
        check_addable(binding)
    return bindings


def _divided(view: View) -> tuple[list[AclBinding], list[AclBinding]]:
    """Return the bindings of the form that exist, and those that are missing."""
    present: list[AclBinding] = []
    missing: list[AclBinding] = []
    bindings = bindings_of(view.form)
    with view.cluster.brokers() as brokers:
        for pattern in dict.fromkeys(binding.pattern for binding in bindings):
            entries = [binding.entry for binding in bindings if binding.pattern == pattern]
            known, new = divided(brokers, pattern, entries)
            present += known
            missing += new
    return present, missing


def _rows(bindings: list[AclBinding], is_present: bool) -> list[Mapping[str, Any]]:
    return [
        {
            "principal": entry.principal,
            "host": entry.host,
            "operation": word_of(entry.operation),
            "resource_type": word_of(pattern.resource_type),
            "name": pattern.name,
            "is_prefixed": pattern.pattern_type is PatternType.PREFIXED,
            "is_present": is_present,
        }
        for pattern, entry in bindings
    ]
