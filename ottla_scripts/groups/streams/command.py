"""`kafka-streams-groups` (org.apache.kafka.tools.streams.StreamsGroupCommand).

Ottla's broker has no streams groups (KIP-1071): the script is for clusters of Apache Kafka 4.1 and
later. For applications of `ottla.streams` use `ottla streams`.

Not done: an application without internal topics is no error with `--delete-all-internal-topics`;
Apache Kafka's tool ends with a NullPointerException.
"""

from ottla_scripts.exits import UsageError
from ottla_scripts.flags import BOOTSTRAP, COMMAND_CONFIG, Flag, Options, Spec, long
from ottla_scripts.groups import kinds, resetting, running
from ottla_scripts.groups.running import takes
from ottla_scripts.groups.streams import deletion, description
from ottla_scripts.groups.streams import resetting as streams_resetting
from ottla_scripts.groups.streams.description import KIND

SPEC = Spec(
    "This tool helps to list, or describe streams groups.",
    {
        "bootstrap-server": BOOTSTRAP,
        "command-config": COMMAND_CONFIG,
        "list": Flag("List the groups."),
        "describe": Flag("Show lag, members or state of groups."),
        "delete": Flag("Delete groups without members."),
        "reset-offsets": Flag("Change the committed offsets of groups without members."),
        "delete-offsets": Flag("Delete the committed offsets of input topics."),
        "group": Flag("The group; may be repeated.", "streams group"),
        "all-groups": Flag("Select all groups."),
        "input-topic": Flag("An input topic, or topic:0,1,2; may be repeated.", "topic"),
        "all-input-topics": Flag("Select all source topics of the topology."),
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
        "delete-internal-topic": Flag("With --execute: delete this internal topic; may be repeated.", "topic"),
        "delete-all-internal-topics": Flag("Delete the internal topics of the application."),
        "members": Flag("Show the members.", only_with=("describe",)),
        "offsets": Flag("Show the lag.", only_with=("describe",)),
        "verbose": Flag("Show more columns.", only_with=("describe",)),
        "state": Flag("Show the state; with --list, only groups in these states.", "state", is_optional=True, only_with=("list", "describe")),
    },
)  # fmt: skip
_ACTIONS: dict[str, running.Action] = {
    "list": kinds.list_groups(KIND),
    "describe": description.describe,
    "reset-offsets": streams_resetting.reset,
    "delete": deletion.delete_groups,
    "delete-offsets": deletion.delete_offsets,
}
_SCOPES = "one of these options: [all-groups], [group]"


def run(options: Options) -> int:
    """Run the action of the command line."""
    _check(options)
    actions = [action for name, action in _ACTIONS.items() if name in options]
    if len(actions) != 1:
        raise UsageError(
            "Command must include exactly one action: --list, --describe, --delete, "
            "--reset-offsets, or --delete-offsets."
        )
    return running.execute(options, actions[0], KIND.name, error_code=1)


def _check(options: Options) -> None:
    options.require("bootstrap-server")
    selects = "group" in options or "all-groups" in options
    if "describe" in options:
        running.check_described(options)
    if "delete" in options:
        if not selects:
            raise takes("delete", _SCOPES)
        if "input-topic" in options or "all-input-topics" in options:
            raise UsageError(
                "Kafka Streams does not support topic-specific offset deletion from a streams group."
            )
    if "delete-offsets" in options:
        _check_deleted_offsets(options)
    if "reset-offsets" in options:
        resetting.check_execution(options)
        if not selects:
            raise takes("reset-offsets", _SCOPES)
        resetting.check_scenarios(options)
    _check_internal_topics(options)
    if ("dry-run" in options or "execute" in options) and "reset-offsets" not in options:
        raise UsageError("Only Option [reset-offsets] accepts [execute] or [dry-run]")
    options.forbid("list", "members", "offsets")
    options.forbid("group", "all-groups", "list")
    options.forbid("input-topic", "list", "describe", "delete")


def _check_deleted_offsets(options: Options) -> None:
    has_topics = "input-topic" in options or "all-input-topics" in options
    if not has_topics or "group" not in options:
        raise takes(
            "delete-offsets",
            "the [group] and one of these options: [all-input-topics], [input-topic]",
        )
    names = options.all("group")
    if len(names) > 1:
        raise UsageError(
            "Option [delete-offsets] supports only one [group] at a time, but found: "
            f"[{', '.join(names)}]"
        )


def _check_internal_topics(options: Options) -> None:
    resets = "reset-offsets" in options
    if "delete-all-internal-topics" in options:
        if not resets and "delete" not in options:
            raise takes(
                "delete-all-internal-topics", "one of these options: [delete], [reset-offsets]"
            )
        if resets and "execute" not in options:
            raise takes("delete-all-internal-topics", "[execute] when [reset-offsets] is used.")
    elif "delete-internal-topic" in options and not (resets and "execute" in options):
        raise takes("delete-internal-topic", "[reset-offsets] when [execute] is used.")
