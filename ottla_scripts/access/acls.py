"""`kafka-acls` (org.apache.kafka.tools.AclCommand), for clusters with an authorizer."""

import sys
from collections.abc import Iterable

from ottla.base.errors import ApiError, OttlaError
from ottla.client.admin.acls import (
    AccessControlEntry,
    AclBinding,
    PatternType,
    ResourcePattern,
)
from ottla.client.brokers import Brokers
from ottla.operations.access.changes import add_entries, remove_entries
from ottla.operations.access.entries import (
    Entries,
    bindings_of,
    check_roles,
    divided,
    entries_of,
    entries_to_add,
    filters_of,
    principal_of,
    row_of,
    row_of_words,
)
from ottla.operations.access.patterns import RESOURCE_TYPES, AclRequest, AclRequestError
from ottla.operations.changes import Change
from ottla_scripts.exits import UsageError
from ottla_scripts.flags import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    CONTROLLERS,
    VALUE_WITHOUT_EFFECT,
    ZOOKEEPER,
    ZOOKEEPER_FILE,
    Flag,
    Options,
    Spec,
)
from ottla_scripts.java_errors import java_exception
from ottla_scripts.printing import as_json, err, out
from ottla_scripts.session import cluster

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
    {
        "zookeeper": ZOOKEEPER,
        "authorizer": VALUE_WITHOUT_EFFECT,
        "authorizer-properties": VALUE_WITHOUT_EFFECT,
        "zk-tls-config-file": ZOOKEEPER_FILE,
    },
)  # fmt: skip
_ACTIONS = ("add", "remove", "list")
_CONNECT = "zookeeper.connect="


def rewrite(command_line: list[str]) -> list[str]:
    """Read `--authorizer-properties zookeeper.connect=…` of 3.9 and before as `--zookeeper …`."""
    result: list[str] = []
    for word in command_line:
        if word.startswith(f"--authorizer-properties={_CONNECT}"):
            result += ["--zookeeper", word.partition(_CONNECT)[2]]
        elif result[-1:] == ["--authorizer-properties"] and word.startswith(_CONNECT):
            result[-1:] = ["--zookeeper", word.removeprefix(_CONNECT)]
        else:
            result.append(word)
    return result


def run(options: Options) -> int:
    """Run the action of the command line."""
    try:
        return _run(options)
    except AclRequestError as error:
        raise UsageError(str(error)) from error


def _run(options: Options) -> int:
    _check(options)
    try:
        with cluster(options) as brokers:
            if "add" in options:
                _add(brokers, options)
            elif "remove" in options:
                _remove(brokers, options)
            else:
                _list(brokers, options)
    except ApiError as error:
        return _fail(java_exception(error))
    except UsageError as error:
        if not error.is_parse_error:
            raise
        return _fail(str(error))
    except AclRequestError:
        raise
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
    # An unknown pattern type is an error of a later step.
    check_roles(_request(options, PatternType.LITERAL))


def _request(options: Options, pattern_type: PatternType) -> AclRequest:
    return AclRequest(
        resources=tuple(
            (resource_type, name)
            for option, resource_type in RESOURCE_TYPES.items()
            for name in options.all(option)
        ),
        pattern_type=pattern_type,
        is_for_cluster="cluster" in options,
        operations=tuple(options.all("operation")),
        allow_principals=tuple(options.all("allow-principal")),
        deny_principals=tuple(options.all("deny-principal")),
        allow_hosts=tuple(options.all("allow-host")),
        deny_hosts=tuple(options.all("deny-host")),
        is_for_producer="producer" in options,
        is_for_consumer="consumer" in options,
        is_idempotent="idempotent" in options,
    )


def _pattern_type(options: Options) -> PatternType:
    text = options["resource-pattern-type"]
    try:
        pattern_type = PatternType[text.upper()]
    except KeyError:
        pattern_type = PatternType.UNKNOWN
    if pattern_type is PatternType.UNKNOWN:
        raise UsageError(
            f"Cannot parse argument '{text}' of option resource-pattern-type", is_parse_error=True
        )
    return pattern_type


def _add(brokers: Brokers, options: Options) -> None:
    added: list[Change] = []
    entries_by_pattern = entries_to_add(_request(options, _pattern_type(options)))
    for pattern, entries in entries_by_pattern.items():
        known, missing = divided(brokers, pattern, entries)
        if not options.is_json:
            _print_added(pattern, known, missing)
        added += add_entries(brokers, missing)
    if options.is_json:
        as_json([row_of_words(change.after) for change in added])


def _print_added(
    pattern: ResourcePattern, known: list[AclBinding], missing: list[AclBinding]
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
    removed: list[Change] = []
    request = _request(options, _pattern_type(options))
    for pattern, entries in entries_of(request).items():
        if not _is_confirmed(options, _question(pattern, entries)):
            continue
        removed += remove_entries(brokers, filters_of(pattern, entries))
    if options.is_json:
        as_json([row_of_words(change.before) for change in removed])


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
    answer = sys.stdin.readline()
    if not answer:
        raise OttlaError(
            "the question was not confirmed: add --force, or write y to standard input"
        )
    return answer.strip().lower() == "y"


def _list(brokers: Brokers, options: Options) -> None:
    bindings = bindings_of(brokers, _request(options, _pattern_type(options)))
    principals = [principal_of(text) for text in options.all("principal")]
    if options.is_json:
        rows = [
            row_of(row) for row in bindings if not principals or row.entry.principal in principals
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
