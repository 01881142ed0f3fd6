"""`kafka-reassign-partitions` (org.apache.kafka.tools.reassign.ReassignPartitionsCommand).

`--generate` proposes the same plan each time; Apache Kafka's tool starts with a random broker.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from ottla.base.errors import ConfigError, OttlaError
from ottla.client.admin.cluster import describe_cluster
from ottla.client.admin.replicas import list_partition_reassignments
from ottla.client.brokers import Brokers
from ottla.operations.moves import directories as log_dir_moves
from ottla.operations.moves import throttles
from ottla.operations.moves.directories import Directories, Replica, find_directories
from ottla.operations.moves.execution import reassign
from ottla.operations.moves.plans import (
    Assignment,
    Targets,
    check_plan,
    listed,
    parse_plan,
    parse_topics,
    plan_text,
    text_of,
)
from ottla.operations.moves.replicas import (
    limited,
    replicas_of,
    replicas_of_topics,
    states,
)
from ottla.operations.moves.spreading import spread
from ottla.tools.text_files import read_json
from ottla_scripts.admin.java_split import java_split
from ottla_scripts.exits import Exit, UsageError
from ottla_scripts.flags import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    CONTROLLERS,
    ZOOKEEPER,
    Flag,
    Options,
    Spec,
    integer,
    long,
)
from ottla_scripts.java_errors import java_exception
from ottla_scripts.printing import as_json, err, out
from ottla_scripts.session import cluster

SPEC = Spec(
    "This tool helps to move topic partitions between replicas.",
    {
        "bootstrap-server": BOOTSTRAP,
        "bootstrap-controller": CONTROLLERS,
        "command-config": COMMAND_CONFIG,
        "generate": Flag("Propose a plan that spreads topics over brokers."),
        "execute": Flag("Start the moves of a plan."),
        "verify": Flag("Show the progress of a plan; when it is complete, remove its throttles."),
        "cancel": Flag("Cancel the moves of a plan."),
        "list": Flag("List the moves under way."),
        "reassignment-json-file": Flag("The plan.", "manual assignment json file path"),
        "topics-to-move-json-file": Flag("The topics of --generate.", "topics to reassign json file path"),
        "broker-list": Flag("The brokers of --generate, as in 1,2,3.", "brokerlist"),
        "disable-rack-aware": Flag("Ignore the racks of brokers."),
        "throttle": Flag("Limit the traffic in bytes a second.", "throttle", long, default=-1),
        "replica-alter-log-dirs-throttle": Flag("Limit moves between directories.", "throttle", long, default=-1),
        "timeout": Flag("The time limit of moves between directories.", "timeout", long, default=10_000),
        "additional": Flag("Start even if other moves are under way."),
        "disallow-replication-factor-change": Flag("Reject moves that change a replication factor."),
        "preserve-throttles": Flag("Do not remove throttles."),
    },
    {"zookeeper": ZOOKEEPER},
)  # fmt: skip
_ACTIONS = ("generate", "execute", "verify", "cancel", "list")
_REQUIRED = {
    "verify": ("reassignment-json-file",),
    "generate": ("topics-to-move-json-file", "broker-list"),
    "execute": ("reassignment-json-file",),
    "cancel": ("reassignment-json-file",),
    "list": (),
}
_CONNECTION = ("bootstrap-server", "command-config", "output")
_PERMITTED = {
    "verify": ("preserve-throttles",),
    "generate": ("disable-rack-aware",),
    "execute": (
        "disallow-replication-factor-change",
        "additional",
        "throttle",
        "replica-alter-log-dirs-throttle",
        "timeout",
    ),
    "cancel": ("preserve-throttles", "timeout", "bootstrap-controller"),
    "list": ("bootstrap-controller",),
}
_BUSY = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override "
    "this and create a new partition assignment in addition to the existing one. The --additional "
    "flag can also be used to change the throttle by resubmitting the current reassignment."
)


def run(options: Options) -> int:
    """Run the action of the command line."""
    action = _check(options)
    try:
        with cluster(options, client_id="reassign-partitions-tool") as brokers:
            {
                "generate": _generate,
                "execute": _execute,
                "verify": _verify,
                "cancel": _cancel,
                "list": _list,
            }[action](brokers, options)
    except OttlaError as error:
        out(f"Error: {java_exception(error)}")
        return 1
    except UsageError as error:
        # A value that cannot be converted.
        out(f"Error: {error}")
        return 1
    return 0


def on_parse_error(error: UsageError) -> int:
    """Print only the sentence."""
    err(str(error))
    return 1


def _check(options: Options) -> str:
    actions = [name for name in _ACTIONS if name in options]
    if len(actions) != 1:
        known = ", ".join(f"--{name}" for name in _ACTIONS)
        raise UsageError(f"Command must include exactly one action: {known}")
    (action,) = actions
    if "bootstrap-server" in options and "bootstrap-controller" in options:
        raise UsageError("Please don't specify both --bootstrap-server and --bootstrap-controller")
    if "bootstrap-server" not in options and "bootstrap-controller" not in options:
        raise UsageError("Please specify either --bootstrap-server or --bootstrap-controller")
    options.require(*_REQUIRED[action])
    allowed = {action, *_REQUIRED[action], *_PERMITTED[action], *_CONNECTION}
    for name, _ in options.occurrences:
        if name not in allowed:
            raise UsageError(f'Option "[{name}]" can\'t be used with action "[{action}]"')
    return action


def _list(brokers: Brokers, options: Options) -> None:
    moves = list_partition_reassignments(brokers)
    if options.is_json:
        as_json({text_of(key): dataclasses.asdict(move) for key, move in moves.items()})
        return
    if not moves:
        out("No partition reassignments found.")
        return
    out("Current partition reassignments:")
    for key in sorted(moves):
        move = moves[key]
        adding = f" adding: {_ids(move.adding)}." if move.adding else ""
        removing = f" removing: {_ids(move.removing)}." if move.removing else ""
        out(f"{text_of(key)}: replicas: {_ids(move.replicas)}.{adding}{removing}")


def _generate(brokers: Brokers, options: Options) -> None:
    numbers = [_broker_id(part) for part in java_split(",", options["broker-list"])]
    twice = sorted({number for number in numbers if numbers.count(number) > 1})
    if twice:
        raise ConfigError(f"Broker list contains duplicate entries: {twice}")
    path = options["topics-to-move-json-file"]
    names = parse_topics(read_json(path), path)
    uses_racks = "disable-rack-aware" not in options
    racks = {
        broker.node_id: broker.rack if uses_racks else None
        for broker in describe_cluster(brokers).brokers
        if broker.node_id in numbers
    }
    if len({rack is None for rack in racks.values()}) > 1:
        raise ConfigError(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make "
            "replica assignment without rack information."
        )
    current = replicas_of_topics(brokers, names)
    if not racks:
        raise ConfigError(
            "All brokers are currently fenced, or have all their log directories cordoned."
        )
    # As in Apache Kafka, all partitions of a topic get the number of replicas of the first.
    proposed = spread({key: current[key[0], 0] for key in current}, racks)
    directories = find_directories(brokers, _brokers_of(current))
    out(f"Current partition replica assignment\n{plan_text(current, directories)}\n")
    out(f"Proposed partition reassignment configuration\n{plan_text(proposed)}")


def _broker_id(text: str) -> int:
    try:
        return integer(text)
    except ValueError:
        raise ConfigError(f'For input string: "{text}"') from None


def _execute(brokers: Brokers, options: Options) -> None:
    # Read first: a wrong number must not start moves.
    limit, moves_limit = options["throttle"], options["replica-alter-log-dirs-throttle"]
    timeout_ms = options["timeout"]
    plan, targets = parse_plan(read_json(options["reassignment-json-file"]))
    check_plan(plan)
    moves = list_partition_reassignments(brokers)
    if moves and "additional" not in options:
        out(_BUSY)
        raise Exit(1)
    known = {broker.node_id for broker in describe_cluster(brokers).brokers}
    unknown = next((b for replicas in plan.values() for b in replicas if b not in known), None)
    if unknown is not None:
        raise ConfigError(f"Unknown broker id {unknown}")
    current = replicas_of(brokers, plan)
    directories = find_directories(brokers, _brokers_of(current))
    out(
        f"Current partition replica assignment\n\n{plan_text(current, directories)}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback"
    )
    if limit >= 0 or moves_limit >= 0:
        out(
            "Warning: You must run --verify periodically, until the reassignment completes, to ensure "
            "the throttle is removed."
        )
    if limit >= 0:
        throttles.throttle(brokers, plan, current, moves, limit)
        out(f"The inter-broker throttle limit was set to {limit} B/s")
    if moves_limit >= 0:
        throttles.throttle_moves(brokers, (replica.broker for replica in targets), moves_limit)
        out(f"The replica-alter-dir throttle limit was set to {moves_limit} B/s")
    keeps_factor = "disallow-replication-factor-change" in options
    failed = reassign(brokers, plan, current, keeps_factor=keeps_factor).errors
    if failed:
        lines = [f"{text_of(key)}: {failed[key]}" for key in sorted(failed)]
        out("\n".join(["Error reassigning partition(s):", *lines]))
        raise Exit(1)
    plural = "" if len(plan) == 1 else "s"
    out(f"Successfully started partition reassignment{plural} for {listed(plan)}")
    if targets:
        log_dir_moves.move(brokers, targets, timeout_ms, _say_started)


def _verify(brokers: Brokers, options: Options) -> None:
    plan, targets = parse_plan(read_json(options["reassignment-json-file"]))
    moves = list_partition_reassignments(brokers)
    out("Status of partition reassignment:")
    for key, replicas in states(brokers, plan, moves).items():
        if replicas is None:
            out(f"Reassignment of partition {text_of(key)} is still in progress.")
        elif replicas == plan[key]:
            out(f"Reassignment of partition {text_of(key)} is completed.")
        else:
            out(
                f"There is no active reassignment of partition {text_of(key)}, but replica set is "
                f"{_ids(replicas)} rather than {_ids(plan[key])}."
            )
    directories = find_directories(brokers, _live(brokers, targets))
    is_busy = _report(targets, directories)
    if not moves and not is_busy and "preserve-throttles" not in options:
        _clear(brokers, plan)


def _report(targets: Targets, directories: Mapping[Replica, Directories]) -> bool:
    """Print the state of each move between directories; return True if one is under way."""
    found = {replica: directories.get(replica, Directories()) for replica in sorted(targets)}
    out(
        "\n".join(
            log_dir_moves.sentence(replica, targets[replica], state)
            for replica, state in found.items()
        )
    )
    return any(state.is_moving for state in found.values())


def _cancel(brokers: Brokers, options: Options) -> None:
    timeout_ms = options["timeout"]
    plan, targets = parse_plan(read_json(options["reassignment-json-file"]))
    moves = list_partition_reassignments(brokers)
    active = [key for key in plan if key in moves]
    if active:
        replicas = {key: moves[key].replicas for key in active}
        failed = reassign(brokers, dict.fromkeys(active), replicas).errors
        if failed:
            plural = "" if len(failed) == 1 else "s"
            lines = [f"{text_of(key)}: {failed[key]}" for key in sorted(failed)]
            out("\n".join([f"Error cancelling partition reassignment{plural} for:", *lines]))
            raise Exit(1)
        plural = "" if len(active) == 1 else "s"
        out(f"Successfully cancelled partition reassignment{plural} for: {listed(active)}")
    else:
        out("None of the specified partition reassignments are active.")
    back = log_dir_moves.ways_back(targets, find_directories(brokers, _live(brokers, targets)))
    if back:
        log_dir_moves.move(brokers, back, timeout_ms, _say_started)
    else:
        # As with Apache Kafka's tool, the next sentence follows on the same line.
        out("None of the specified partition moves are active.", end="")
    if "preserve-throttles" not in options:
        _clear(brokers, plan)


def _brokers_of(plan: Assignment) -> set[int]:
    return {broker for replicas in plan.values() for broker in replicas}


def _live(brokers: Brokers, targets: Targets) -> set[int]:
    return {replica.broker for replica in targets} & set(brokers.node_ids())


def _clear(brokers: Brokers, plan: Assignment) -> None:
    node_ids, live, names = limited(brokers, plan)
    out(f"Clearing broker-level throttles on broker{_plural(node_ids)} {_ids(node_ids)}")
    throttles.clear(brokers, live, [])
    out(f"Clearing topic-level throttles on topic{_plural(names)} {','.join(names)}")
    throttles.clear(brokers, [], names)


def _say_started(replica: Replica, directory: str) -> None:
    out(
        f"Successfully started moving log directory to {directory} for replica "
        f"{replica.topic}-{replica.partition} with broker {replica.broker} "
    )


def _plural(values: Sequence[object]) -> str:
    return "" if len(values) == 1 else "s"


def _ids(values: Sequence[int]) -> str:
    return ",".join(map(str, values))
