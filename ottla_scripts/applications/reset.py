"""`kafka-streams-application-reset` (org.apache.kafka.tools.StreamsResetter).

As in Kafka, it moves offsets and deletes internal topics, and leaves local state alone: for an
application of `ottla.streams`, `ottla streams reset` also removes the checkpoint, which has the
positions.
"""

from collections.abc import Mapping, Sequence

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client.admin import groups, topics
from ottla.client.brokers import Brokers
from ottla.operations.offsets.groups import remove_members
from ottla.operations.offsets.plans import (
    OffsetDifference,
    OffsetPlan,
    ResetRequest,
    Strategy,
    current_offsets,
    offsets_since,
    plan_partitions,
)
from ottla.operations.offsets.resets import execute
from ottla.operations.topics import delete
from ottla.tools.text_files import is_number, read_text
from ottla_scripts.exits import RejectedOption, UsageError
from ottla_scripts.flags import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    VALUE_WITHOUT_EFFECT,
    WITHOUT_EFFECT,
    Flag,
    Old,
    Options,
    Spec,
    long,
)
from ottla_scripts.groups.resetting import parse_age, parse_date_time
from ottla_scripts.groups.streams.topic_names import is_internal
from ottla_scripts.java_errors import java_exception
from ottla_scripts.java_order import hash_order, name_order, partition_hash
from ottla_scripts.printing import as_json, err, java_list, out
from ottla_scripts.session import cluster

Key = tuple[str, int]
OffsetDifferences = dict[Key, OffsetDifference]
_ISOLATED = ("to-offset", "to-datetime", "by-duration", "to-earliest", "to-latest", "from-file", "shift-by")  # fmt: skip
_EXECUTION = "java.util.concurrent.ExecutionException: "
_DEFAULT = "localhost:9092"


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


SPEC = Spec(
    "This tool helps to quickly reset an application in order to reprocess its data from scratch.",
    {
        "application-id": Flag("The application (application.id).", "id"),
        "bootstrap-server": BOOTSTRAP._replace(default=_DEFAULT),
        "config-file": Flag("Use --command-config instead.", "file name"),
        "command-config": COMMAND_CONFIG,
        "input-topics": Flag("Topics whose offsets are reset.", "list", _names),
        "intermediate-topics": Flag("Topics whose end is the new offset.", "list", _names),
        "internal-topics": Flag("Delete only these internal topics.", "list", _names),
        "to-offset": Flag("Reset to this offset.", "Long", long),
        "to-datetime": Flag("Reset to a time: YYYY-MM-DDTHH:mm:SS.sss.", "String"),
        "by-duration": Flag("Reset to this long ago: PnDTnHnMnS.", "String"),
        "to-earliest": Flag("Reset to the beginning (default)."),
        "to-latest": Flag("Reset to the end."),
        "from-file": Flag("Reset to the offsets of a file of TOPIC,PARTITION,OFFSET.", "String"),
        "shift-by": Flag("Shift the committed offsets by this number.", "number-of-offsets", long),
        "force": Flag("Remove the members of the group first."),
        "dry-run": Flag("Only print the actions."),
    },
    {
        "bootstrap-servers": Old("bootstrap-server", "Option --{old} is deprecated; use --{new}."),
        # Apache Kafka has ignored both since 1.0 and 3.0.
        "zookeeper": VALUE_WITHOUT_EFFECT,
        "execute": WITHOUT_EFFECT,
    },
)


def run(options: Options) -> int:
    """Reset offsets, then delete internal topics."""
    if "application-id" not in options:
        raise UsageError("Missing required option(s) [application-id]")
    for name in _ISOLATED:
        options.forbid(name, *(other for other in _ISOLATED if other != name))
    options.forbid("config-file", "command-config")
    options.rename("config-file", "command-config")
    try:
        with cluster(options) as brokers:
            reset = _Reset(brokers, options)
            reset.remove_members()
            code = reset.reset_offsets()
            reset.delete_internal_topics()
            reset.print_json()
    except _Refused as error:
        return _print_error(str(error))
    except RejectedOption as error:
        return _print_error(f"org.apache.kafka.common.config.ConfigException: {error}")
    except OttlaError as error:
        worded = java_exception(error)
        is_response = worded.startswith("org.apache.kafka.")
        return _print_error(f"{_EXECUTION if is_response else ''}{worded}")
    return code


def _print_error(text: str) -> int:
    if text.startswith("java.text.ParseException"):
        err("ERROR: Resetting offsets failed.")
    err(f"ERROR: {text}")
    return 1


def on_parse_error(error: UsageError) -> int:
    """Print only the sentence."""
    err(str(error))
    return 1


class _Refused(Exception):
    """The tool does nothing; the message has Java's class first, as the tool prints it."""


class _Reset:
    """One run of the tool."""

    def __init__(self, brokers: Brokers, options: Options) -> None:
        self._brokers = brokers
        self._options = options
        self._name = str(options["application-id"])
        self._is_dry = "dry-run" in options
        self._topics = {topic.name: topic for topic in topics.list_topics(brokers)}
        self._moved: OffsetDifferences = {}
        self._deleted: list[str] = []

    def remove_members(self) -> None:
        """Refuse a group with members, or remove them with --force."""
        try:
            group = groups.describe_group(self._brokers, self._name)
        except ApiError as error:
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            group = None
        if group is not None and group.members:
            if "force" not in self._options:
                names = java_list(member.member_id for member in group.members)
                raise _Refused(
                    f"java.lang.IllegalStateException: Consumer group '{self._name}' is still active "
                    f"and has following members: {names}. Make sure to stop all running application "
                    "instances before running the reset tool. You can use option '--force' to remove "
                    "active members from the group."
                )
            self._say(f"Force deleting all active members in the group: {self._name}")
            remove_members(self._brokers, group, reason="the application is reset")
        if self._is_dry:
            self._say(
                "----Dry run displays the actions which will be performed when running Streams Reset "
                "Tool----"
            )

    def reset_offsets(self) -> int:
        """Move the offsets of input topics, and those of intermediate topics to the end."""
        inputs = [name for names in self._options.all("input-topics") for name in names]
        between = [name for names in self._options.all("intermediate-topics") for name in names]
        if between:
            self._say(
                "WARN: `--intermediate-topics` is deprecated and will be removed in a future release"
            )
        if not inputs and not between:
            self._say("No input or intermediate topics specified. Skipping seek.")
            return 0
        if inputs:
            self._say(f"Reset-offsets for input topics {java_list(inputs)}")
        if between:
            self._say(f"Seek-to-end for intermediate topics {java_list(between)}")
        code = self._report_missing("input", "Topic: ", inputs)
        code |= self._report_missing("intermediate", "Topic:", between)
        keys = self._partitions(inputs)
        between_keys = self._partitions([name for name in between if name not in inputs])
        if not keys and not between_keys:
            return code
        plan: OffsetDifferences = {}
        if keys:
            self._say(
                f"Following input topics offsets will be reset to (for consumer group {self._name})"
            )
            plan = self._plan(keys)
            for topic, partition in keys:
                offset = plan[topic, partition].after
                self._say(f"Topic: {topic} Partition: {partition} Offset: {offset}")
        if between_keys:
            self._say(
                "Following intermediate topics offsets will be reset to end (for consumer group "
                f"{self._name})"
            )
            for topic, _ in between_keys:
                self._say(f"Topic: {topic}")
            plan |= self._planned(Strategy.TO_LATEST, between_keys)
        if not self._is_dry:
            rows = tuple(plan.values())
            execute(self._brokers, OffsetPlan(self._name, Strategy.FROM_FILE, rows, "", 0))
        self._moved = plan
        self._say("Done.")
        return code

    def delete_internal_topics(self) -> None:
        """Delete the application's internal topics, or the named ones of them."""
        inferred = [name for name in name_order(self._topics) if is_internal(name, self._name)]
        named = [name for names in self._options.all("internal-topics") for name in names]
        if set(named) - set(inferred):
            raise _Refused(
                "java.lang.IllegalArgumentException: Invalid topic specified in the --internal-topics "
                "option. Ensure that the topics specified are all internal topics. Do a dry run "
                "without the --internal-topics option to see the list of all internal topics that can "
                "be deleted."
            )
        self._deleted = named or inferred
        kind = "specified" if named else "inferred"
        self._say(f"Deleting {kind} internal topics {java_list(self._deleted)}")
        if not self._is_dry:
            for name in self._deleted:
                delete(self._brokers, self._topics[name])
        self._say("Done.")

    def print_json(self) -> None:
        """Print the result as JSON if it is wanted."""
        if self._options.is_json:
            rows = [
                {"topic": row.topic, "partition": row.partition, "offset": row.after}
                for row in self._moved.values()
            ]
            as_json(
                {"executed": not self._is_dry, "offsets": rows, "deleted_topics": self._deleted}
            )

    def _say(self, text: str) -> None:
        if not self._options.is_json:
            out(text)

    def _report_missing(self, kind: str, label: str, names: Sequence[str]) -> int:
        missing = [name for name in names if name not in self._topics]
        if missing:
            self._say(f"Following {kind} topics are not found, skipping them")
            for name in missing:
                self._say(f"{label}{name}")
        return 1 if missing else 0

    def _partitions(self, names: Sequence[str]) -> list[Key]:
        keys = [
            (name, row.partition)
            for name in dict.fromkeys(names)
            if name in self._topics
            for row in self._topics[name].partitions
        ]
        return hash_order(keys, partition_hash)

    def _plan(self, keys: Sequence[Key]) -> OffsetDifferences:
        options = self._options
        if "to-latest" in options:
            return self._planned(Strategy.TO_LATEST, keys)
        if "to-offset" in options:
            return self._limited(dict.fromkeys(keys, options["to-offset"]))
        if "shift-by" in options:
            # Without a committed offset, the end (auto.offset.reset=latest).
            positions = self._planned(Strategy.TO_CURRENT, keys)
            shift = options["shift-by"]
            return self._limited({key: (row.after or 0) + shift for key, row in positions.items()})
        if "to-datetime" in options:
            return self._since(keys, parse_date_time(options["to-datetime"]))
        if "by-duration" in options:
            try:
                moment_ms = parse_age(options["by-duration"])
            except OttlaError as error:
                raise _Refused(f"java.time.format.DateTimeParseException: {error}") from error
            return self._since(keys, moment_ms)
        if "from-file" in options:
            return self._limited(_read_plan(options["from-file"], keys))
        return self._planned(Strategy.TO_EARLIEST, keys)

    def _planned(
        self,
        strategy: Strategy,
        keys: Sequence[Key],
        amount: int = 0,
        requested: Mapping[Key, int] | None = None,
    ) -> OffsetDifferences:
        request = ResetRequest(self._name, strategy, amount=amount, offsets=requested or {})
        current = current_offsets(self._brokers, self._name)
        rows = plan_partitions(self._brokers, request, keys, current)
        return {row.key: row for row in rows}

    def _since(self, keys: Sequence[Key], timestamp_ms: int) -> OffsetDifferences:
        known = offsets_since(self._brokers, keys, timestamp_ms)
        for topic, partition in keys:
            if (topic, partition) not in known:
                self._say(
                    f"Partition {partition} from topic {topic} is empty, without a committed record. "
                    "Falling back to latest known offset."
                )
        return self._planned(Strategy.TO_DATETIME, keys, timestamp_ms)

    def _limited(self, requested: Mapping[Key, int]) -> OffsetDifferences:
        keys = hash_order(requested, partition_hash)
        plan = self._planned(Strategy.FROM_FILE, keys, requested=requested)
        for key in keys:
            offset, row = requested[key], plan[key]
            if offset >= row.end_offset:
                self._say(
                    f"New offset ({offset}) is higher than latest offset. Value will be set to "
                    f"{row.end_offset}"
                )
            elif offset <= row.start_offset:
                self._say(
                    f"New offset ({offset}) is lower than earliest offset. Value will be set to "
                    f"{row.start_offset}"
                )
        return {key: plan[key] for key in keys}


def _read_plan(path: str, keys: Sequence[Key]) -> dict[Key, int]:
    plan: dict[Key, int] = {}
    text = read_text(path)
    for line in text.splitlines():
        parts = line.split(",")
        if len(parts) != 3 or not (is_number(parts[1], 32) and is_number(parts[2], 64)):
            raise _Refused(
                "java.text.ParseException: Reset plan CSV file is not following the format "
                "`TOPIC,PARTITION,OFFSET`."
            )
        plan[parts[0], int(parts[1])] = int(parts[2])
    if not text:
        raise _Refused("java.text.ParseException: Error parsing reset plan CSV file. It is empty,")
    missing = [
        f"{topic}-{partition}" for topic, partition in keys if (topic, partition) not in plan
    ]
    if missing:
        raise _Refused(f"{path} has no line for {', '.join(missing)}: add TOPIC,PARTITION,OFFSET")
    return {key: plan[key] for key in keys}
