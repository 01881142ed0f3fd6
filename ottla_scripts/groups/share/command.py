"""`kafka-share-groups` (org.apache.kafka.tools.consumer.group.ShareGroupCommand).

Ottla's broker has no share groups (KIP-932): the script is for clusters of Apache Kafka 4.0 and
later. As with Apache Kafka's tool, an error of the cluster is printed on standard output with exit
code 0.

Not done: nothing.
"""

from ottla_scripts.exits import UsageError
from ottla_scripts.flags import BOOTSTRAP, COMMAND_CONFIG, Flag, Options, Spec, long
from ottla_scripts.groups import kinds, resetting, running
from ottla_scripts.groups.running import takes
from ottla_scripts.groups.share import changes, description
from ottla_scripts.groups.share.description import KIND

SPEC = Spec(
    "This tool helps to list, describe, reset and delete share groups.",
    {
        "bootstrap-server": BOOTSTRAP,
        "command-config": COMMAND_CONFIG,
        "list": Flag("List the groups."),
        "describe": Flag("Show start offsets, members or state of groups."),
        "delete": Flag("Delete groups without members."),
        "reset-offsets": Flag("Change the start offsets of a group without members."),
        "delete-offsets": Flag("Delete the start offsets of topics."),
        "group": Flag("The group; may be repeated.", "share group"),
        "all-groups": Flag("Select all groups."),
        "topic": Flag("A topic, or topic:0,1,2; may be repeated.", "topic"),
        "all-topics": Flag("Select all topics of the group."),
        "timeout": Flag("The time limit of a request.", "timeout (ms)", long, default=30_000),
        "to-datetime": Flag("Reset to a time, as in 2026-02-14T12:00:00.000.", "datetime"),
        "to-earliest": Flag("Reset to the earliest offset."),
        "to-latest": Flag("Reset to the end."),
        "dry-run": Flag("Show the new offsets without changing them."),
        "execute": Flag("Change the offsets."),
        "members": Flag("Show the members.", only_with=("describe",)),
        "offsets": Flag("Show start offsets and lag.", only_with=("describe",)),
        "verbose": Flag("Show more columns.", only_with=("describe",)),
        "state": Flag("Show the state; with --list, only groups in these states.", "state", is_optional=True, only_with=("describe", "list")),
    },
)  # fmt: skip
_ACTIONS: dict[str, running.Action] = {
    "list": kinds.list_groups(KIND),
    "describe": description.describe,
    "delete": changes.delete_groups,
    "reset-offsets": changes.reset,
    "delete-offsets": changes.delete_offsets,
}
on_parse_error = running.on_parse_error


def run(options: Options) -> int:
    """Run the action of the command line."""
    _check(options)
    actions = [action for name, action in _ACTIONS.items() if name in options]
    if len(actions) != 1:
        raise UsageError(
            "Command must include exactly one action: --list, --describe, --delete, "
            "--reset-offsets, --delete-offsets."
        )
    return running.execute(options, actions[0], KIND.name)


def _check(options: Options) -> None:
    options.require("bootstrap-server")
    if "describe" in options:
        running.check_described(options)
    if "delete" in options:
        if "group" not in options and "all-groups" not in options:
            raise takes("delete", "the options [group] or [all-groups]")
        if "group" in options and "all-groups" in options:
            raise takes("delete", "either [group] or [all-groups], not both.")
        if "topic" in options:
            raise UsageError("Option [delete] does not take the option: [topic]")
    if "delete-offsets" in options and not ("group" in options and "topic" in options):
        raise takes("delete-offsets", "the following options: [group], [topic]")
    if "reset-offsets" in options:
        resetting.check_execution(options)
        if "group" not in options:
            raise takes("reset-offsets", "the option: [group]")
        if "topic" not in options and "all-topics" not in options:
            raise takes("reset-offsets", "one of these options: [all-topics], [topic]")
        if not any(name in options for name in resetting.SCENARIOS):
            raise takes(
                "reset-offsets", "one of these options: [to-datetime], [to-earliest], [to-latest]"
            )
        resetting.check_scenarios(options)
    options.forbid("group", "all-groups", "list")
    options.forbid("topic", "list", "describe")
