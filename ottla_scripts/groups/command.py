"""`kafka-consumer-groups` (org.apache.kafka.tools.consumer.group.ConsumerGroupCommand).

As with Apache Kafka's tool, an error of the cluster is printed on standard output with exit code 0,
and a wrong command line has exit code 1; `ottla group` fails in both cases.

Not done: epochs and target assignments of KIP-848 in `--verbose` are shown as
`-`.
"""

from collections.abc import Callable

from ottla.base.errors import ApiError
from ottla.base.loading import load_module
from ottla.client.admin import groups
from ottla.client.brokers import Brokers
from ottla_scripts.admin.java_split import java_split
from ottla_scripts.exits import UsageError
from ottla_scripts.flags import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    WITHOUT_EFFECT,
    ZOOKEEPER,
    Flag,
    Options,
    Spec,
    long,
)
from ottla_scripts.groups import deletion, description, resetting, running
from ottla_scripts.groups.running import takes
from ottla_scripts.printing import as_json, err, left, out

SPEC = Spec(
    "This tool helps to list all consumer groups, describe a consumer group, delete consumer group "
    "info, or reset consumer group offsets.",
    {
        "bootstrap-server": BOOTSTRAP,
        "command-config": COMMAND_CONFIG,
        "list": Flag("List the groups."),
        "describe": Flag("Show offsets and lag, members or state of groups."),
        "delete": Flag("Delete groups without members."),
        "reset-offsets": Flag("Change the committed offsets of groups without members."),
        "delete-offsets": Flag("Delete the committed offsets of topics."),
        "group": Flag("The group; may be repeated.", "consumer group"),
        "all-groups": Flag("Select all groups."),
        "topic": Flag("A topic, or topic:0,1,2; may be repeated.", "topic"),
        "all-topics": Flag("Select all topics of the group."),
        "timeout": Flag("The time limit of a request.", "timeout (ms)", long, default=30_000),
        "to-offset": Flag("Reset to this offset.", "offset", long),
        "shift-by": Flag("Shift by this number of records; negative moves back.", "number-of-offsets", long),
        "to-datetime": Flag("Reset to a time, as in 2026-02-14T12:00:00.000.", "datetime"),
        "by-duration": Flag("Reset to the time this long ago, as in PT1H30M.", "duration"),
        "to-earliest": Flag("Reset to the earliest offset."),
        "to-latest": Flag("Reset to the end."),
        "to-current": Flag("Keep the current offsets."),
        "from-file": Flag("Reset to the offsets of a CSV file.", "path to CSV file"),
        "dry-run": Flag("Show the new offsets without committing them."),
        "execute": Flag("Commit the new offsets."),
        "export": Flag("Print the new offsets as CSV."),
        "members": Flag("Show the members.", only_with=("describe",)),
        "offsets": Flag("Show offsets and lag.", only_with=("describe",)),
        "verbose": Flag("Show more columns.", only_with=("describe",)),
        "state": Flag("Show the state; with --list, only groups in these states.", "state", is_optional=True, only_with=("describe", "list")),
        "validate-regex": Flag("Check a regular expression for RE2, without a cluster.", "regex"),
        "type": Flag("Show the type; with --list, only groups of these types.", "type", is_optional=True, only_with=("list",)),
    },
    {"new-consumer": WITHOUT_EFFECT, "zookeeper": ZOOKEEPER},
)  # fmt: skip
_ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
_STATES = ("PreparingRebalance", "Empty", "Stable", "Assigning", "Dead", "CompletingRebalance", "Reconciling")  # fmt: skip
_TYPES = ("Consumer", "Classic")


def run(options: Options) -> int:
    """Run the action of the command line."""
    _check(options)
    if sum(name in options for name in _ACTIONS) != 1:
        raise UsageError(
            "Command must include exactly one action: --list, --describe, --delete, "
            "--reset-offsets, --delete-offsets, --validate-regex"
        )
    actions: dict[str, running.Action] = {
        "list": _list,
        "describe": description.describe,
        "delete": deletion.delete_groups,
        "reset-offsets": resetting.reset,
        "delete-offsets": deletion.delete_offsets,
    }
    action = next(name for name in _ACTIONS if name in options)
    if action == "validate-regex":
        _validate(options["validate-regex"])
        return 0
    return running.execute(options, actions[action], "consumer")


on_parse_error = running.on_parse_error


def _validate(text: str) -> None:
    try:
        load_module("ottla.coordinators.consumer.regex.patterns").SubscriptionPattern(text)
    except ApiError as error:
        reason = str(error).rpartition("not a valid regular expression: ")[2]
        out(f"The regular expression `{text}` is invalid: {reason}")
    else:
        out(f"The regular expression `{text}` is valid.")


def _list(brokers: Brokers, options: Options) -> None:
    states = _choices(options["state"], _STATES, "Invalid state list")
    types = _choices(options["type"], _TYPES, "Invalid types list")
    with running.runtime_exception(is_listing=True):
        listed = groups.list_groups(brokers)
    selected = [
        group
        for group in listed
        if group.protocol_type in ("consumer", "")
        and (not states or group.state.lower() in states)
        and (not types or group.type.lower() in types)
    ]
    if options.is_json:
        as_json([{"group": g.group_id, "type": g.type, "state": g.state} for g in selected])
        return
    if "state" not in options and "type" not in options:
        for group in selected:
            out(group.group_id)
        return
    widths = [max([15, *(len(group.group_id) for group in selected)]) + 10]
    columns: list[tuple[str, Callable[[groups.GroupListing], str]]] = [
        ("GROUP", lambda group: group.group_id)
    ]
    if "type" in options:
        columns.append(("TYPE", lambda group: group.type.capitalize() or "Unknown"))
    if "state" in options:
        columns.append(("STATE", lambda group: group.state or "Unknown"))
    widths += [20] * (len(columns) - 1)
    out(left([title for title, _ in columns], widths))
    for group in selected:
        out(left([cell(group) for _, cell in columns], widths))


def _choices(text: str | None, known: tuple[str, ...], sentence: str) -> set[str]:
    if not text:
        return set()
    chosen = {part.strip().lower() for part in java_split(",", text)}
    if chosen - {name.lower() for name in known}:
        kind = "states" if known is _STATES else "types"
        raise UsageError(f"{sentence} '{text}'. Valid {kind} are: {', '.join(known)}")
    return chosen


def _check(options: Options) -> None:
    options.require("bootstrap-server")
    selects = "group" in options or "all-groups" in options
    if "describe" in options:
        running.check_described(options)
    if "delete" in options:
        if not selects:
            raise takes("delete", "one of these options: [all-groups], [group]")
        if "topic" in options:
            raise UsageError(
                "The consumer does not support topic-specific offset deletion from a consumer group."
            )
    if "delete-offsets" in options and not ("group" in options and "topic" in options):
        raise takes("delete-offsets", "the following options: [topic], [group]")
    if "reset-offsets" in options:
        _check_reset(options, selects)
    options.forbid("group", "all-groups", "list")
    options.forbid("topic", "list", "describe")


def _check_reset(options: Options, selects: bool) -> None:
    if "dry-run" in options and "execute" in options:
        raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if "dry-run" not in options and "execute" not in options:
        err(
            "WARN: No action will be performed as the --execute option is missing. In version 5.0, "
            "this command will require either --dry-run or --execute to be specified. You should "
            "add the --dry-run option explicitly if you are scripting this command and want to keep "
            "the current default behavior without prompting."
        )
    if not selects:
        raise takes("reset-offsets", "one of these options: [all-groups], [group]")
    resetting.check_scenarios(options)
