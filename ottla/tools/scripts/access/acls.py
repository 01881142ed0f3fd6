"""`kafka-acls` (org.apache.kafka.tools.AclCommand), for clusters with an authorizer.

Ottla's broker has no authorizer: the script prints the error of an Apache Kafka broker without one.
"""

import sys
from collections.abc import Iterable

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client.admin import acls as admin
from ottla.client.admin.acls import (
    AccessControlEntry,
    AclBinding,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from ottla.client.brokers import Brokers
from ottla.client.errors import Unsupported
from ottla.tools.scripts.access.entries import Entries, entries_of, principal_of
from ottla.tools.scripts.access.patterns import pattern_type_of, patterns_of
from ottla.tools.scripts.exits import UsageError
from ottla.tools.scripts.flags import BOOTSTRAP, COMMAND_CONFIG, CONTROLLERS, Flag, Options, Spec
from ottla.tools.scripts.printing import as_json, err, java_exception, out
from ottla.tools.scripts.session import cluster

_PRINCIPAL = "A principal, as in User:anna; may be repeated."
SPEC = Spec(
    "This tool helps to manage acls on kafka.",
    {
        "bootstrap-server": BOOTSTRAP,
        "bootstrap-controller": CONTROLLERS,
        "command-config": COMMAND_CONFIG,
        "add": Flag("Add ACLs."),
        "remove": Flag("Remove ACLs."),
        "list": Flag("Show the ACLs of a resource, by default all."),
        "topic": Flag("A topic; * is every topic; may be repeated.", "topic"),
        "group": Flag("A consumer group; * is every group; may be repeated.", "group"),
        "cluster": Flag("The cluster."),
        "transactional-id": Flag("A transactional id; may be repeated.", "transactional-id"),
        "delegation-token": Flag("A delegation token; may be repeated.", "delegation-token"),
        "user-principal": Flag("A user, for operations on tokens.", "user-principal"),
        "resource-pattern-type": Flag(
            "literal or prefixed; for --list and --remove also any and match.",
            "ANY|MATCH|LITERAL|PREFIXED",
            default="LITERAL",
        ),
        "operation": Flag("An operation; default: All; may be repeated.", "operation"),
        "allow-principal": Flag(_PRINCIPAL, "allow-principal"),
        "deny-principal": Flag(_PRINCIPAL, "deny-principal"),
        "allow-host": Flag("A host of the allowed principals; default: all.", "allow-host"),
        "deny-host": Flag("A host of the denied principals; default: all.", "deny-host"),
        "principal": Flag("With --list: only ACLs of this principal.", "principal", is_optional=True),
        "producer": Flag("The ACLs that a producer needs."),
        "consumer": Flag("The ACLs that a consumer needs."),
        "idempotent": Flag("With --producer: the ACL that idempotence needs."),
        "force": Flag("Do not ask for confirmation."),
    },
)  # fmt: skip
_ACTIONS = ("add", "remove", "list")
# The answers of an Apache Kafka broker without an authorizer. Ottla's broker lacks the requests.
_NO_AUTHORIZER = "No Authorizer is configured on the broker"
_NO_AUTHORIZER_TO_DELETE = "No Authorizer is configured."


def run(options: Options) -> int:
    """Run the action of the command line."""
    _check(options)
    try:
        with cluster(options) as brokers:
            if "add" in options:
                _add(brokers, options)
            elif "remove" in options:
                _remove(brokers, options)
            else:
                _list(brokers, options)
    except Unsupported:
        sentence = _NO_AUTHORIZER_TO_DELETE if "remove" in options else _NO_AUTHORIZER
        return _fail(java_exception(ApiError(ErrorCode.SECURITY_DISABLED, sentence)))
    except ApiError as error:
        return _fail(java_exception(error))
    except UsageError as error:
        if not error.is_parse_error:
            raise
        return _fail(str(error))
    except (OttlaError, ValueError) as error:
        return _fail(str(error))
    return 0


def _fail(sentence: str) -> int:
    # To standard output, as AclCommand does.
    out(f"Error while executing ACL command: {sentence}")
    return 1


def _check(options: Options) -> None:
    if "bootstrap-server" in options and "bootstrap-controller" in options:
        raise UsageError(
            "Only one of --bootstrap-server or --bootstrap-controller must be specified"
        )
    if "bootstrap-server" not in options and "bootstrap-controller" not in options:
        raise UsageError("One of --bootstrap-server or --bootstrap-controller must be specified")
    if sum(name in options for name in _ACTIONS) != 1:
        raise UsageError("Command must include exactly one action: --list, --add, --remove. ")
    options.forbid(
        "list",
        *("producer", "consumer"),
        *("allow-host", "allow-principal", "deny-host", "deny-principal"),
    )
    for role in ("producer", "consumer"):
        options.forbid(role, "operation", "deny-principal", "deny-host")
    if "principal" in options and "list" not in options:
        raise UsageError("The --principal option is only available if --list is set")
    if "producer" in options and "topic" not in options:
        raise UsageError("With --producer you must specify a --topic")
    if "idempotent" in options and "producer" not in options:
        raise UsageError("The --idempotent option is only available if --producer is set")
    if "consumer" in options and not _is_complete_consumer(options):
        raise UsageError(
            "With --consumer you must specify a --topic and a --group and no --cluster or "
            "--transactional-id option should be specified."
        )


def _is_complete_consumer(options: Options) -> bool:
    is_only_consumer = "producer" not in options
    has_others = "cluster" in options or "transactional-id" in options
    return "topic" in options and "group" in options and not (is_only_consumer and has_others)


def _entries_to_add(options: Options) -> Entries:
    pattern_type = pattern_type_of(options)
    if pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise UsageError(
            f"A '--resource-pattern-type' value of '{pattern_type.name}' is not valid when adding "
            "acls."
        )
    entries = entries_of(options)
    if not all(entries.values()):
        raise UsageError(
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."
        )
    return entries


def _add(brokers: Brokers, options: Options) -> None:
    added: list[AclBinding] = []
    for pattern, entries in _entries_to_add(options).items():
        known = set(admin.describe_acls(brokers, AclBinding(pattern)))
        bindings = [AclBinding(pattern, entry) for entry in entries]
        missing = [binding for binding in bindings if binding not in known]
        if not options.is_json:
            _print_added(pattern, [binding for binding in bindings if binding in known], missing)
        if missing:
            admin.create_acls(brokers, missing)
            added += missing
    if options.is_json:
        as_json([_row(binding) for binding in added])


def _print_added(
    pattern: ResourcePattern, known: Iterable[AclBinding], missing: list[AclBinding]
) -> None:
    for binding in known:
        out(
            f"Acl (pattern={_pattern_text(pattern)}, entry={_entry_text(binding.entry)}) already "
            "exists."
        )
    if missing:
        entries = [binding.entry for binding in missing]
        out(f"Adding ACLs for resource `{_pattern_text(pattern)}`: \n {_lines(entries)}\n")


def _remove(brokers: Brokers, options: Options) -> None:
    deleted: list[AclBinding] = []
    for pattern, entries in entries_of(options).items():
        if not _is_confirmed(options, _question(pattern, entries)):
            continue
        filters = [AclBinding(pattern, entry) for entry in entries or [AccessControlEntry()]]
        deleted += admin.delete_acls(brokers, filters)
    if options.is_json:
        as_json([_row(binding) for binding in deleted])


def _question(pattern: ResourcePattern, entries: list[AccessControlEntry]) -> str:
    shown = _pattern_text(pattern)
    if not entries:
        return f"Are you sure you want to delete all ACLs for resource filter `{shown}`? (y/n)"
    return (
        f"Are you sure you want to remove ACLs: \n {_lines(entries)}\n from resource filter "
        f"`{shown}`? (y/n)"
    )


def _is_confirmed(options: Options, question: str) -> bool:
    if "force" in options:
        return True
    # With --output json, standard output has only the result.
    (err if options.is_json else out)(question)
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() == "y"


def _list(brokers: Brokers, options: Options) -> None:
    patterns = patterns_of(options) or [ResourcePattern(ResourceType.ANY, None, PatternType.ANY)]
    bindings: dict[AclBinding, None] = {}
    for pattern in patterns:
        bindings |= dict.fromkeys(admin.describe_acls(brokers, AclBinding(pattern)))
    principals = [principal_of(text) for text in options.all("principal")]
    if options.is_json:
        rows = [
            _row(row) for row in bindings if not principals or row.entry.principal in principals
        ]
        as_json(rows)
        return
    if not principals:
        _print_listed(bindings)
    for principal in dict.fromkeys(principals):
        out(f"ACLs for principal `{principal}`")
        _print_listed(row for row in bindings if row.entry.principal == principal)


def _print_listed(bindings: Iterable[AclBinding]) -> None:
    by_pattern: Entries = {}
    for pattern, entry in bindings:
        by_pattern.setdefault(pattern, []).append(entry)
    for pattern, entries in by_pattern.items():
        out(f"Current ACLs for resource `{_pattern_text(pattern)}`:\n{_lines(entries)}\n")


def _lines(entries: Iterable[AccessControlEntry]) -> str:
    return "\n".join(f"\t{_entry_text(entry)}" for entry in entries)


def _entry_text(entry: AccessControlEntry) -> str:
    return (
        f"(principal={entry.principal}, host={entry.host}, operation={entry.operation.name}, "
        f"permissionType={entry.permission_type.name})"
    )


def _pattern_text(pattern: ResourcePattern) -> str:
    return (
        f"ResourcePattern(resourceType={pattern.resource_type.name}, name={pattern.name}, "
        f"patternType={pattern.pattern_type.name})"
    )


def _row(binding: AclBinding) -> dict[str, str | None]:
    pattern, entry = binding
    return {
        "resource_type": pattern.resource_type.name,
        "name": pattern.name,
        "pattern_type": pattern.pattern_type.name,
        "principal": entry.principal,
        "host": entry.host,
        "operation": entry.operation.name,
        "permission_type": entry.permission_type.name,
    }
