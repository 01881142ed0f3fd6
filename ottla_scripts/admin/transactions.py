"""`kafka-transactions` (org.apache.kafka.tools.TransactionsCommand)."""

import time
from collections.abc import Callable, Mapping

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client.admin import transactions as admin
from ottla.client.brokers import Brokers
from ottla.operations.transactions import fence
from ottla_scripts.admin import hanging
from ottla_scripts.argparse4j import require
from ottla_scripts.exits import NoSuchFile
from ottla_scripts.flags import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    Flag,
    Options,
    Spec,
    integer,
    long,
)
from ottla_scripts.java_errors import java_message
from ottla_scripts.printing import as_json, err
from ottla_scripts.session import cluster
from ottla_scripts.subcommands import action_of, first_as_option, print_table

_FORCE = "forceTerminateTransaction"
_ACTIONS = ("list", "describe", "describe-producers", "abort", "find-hanging", _FORCE)
SPEC = Spec(
    "This tool is used to analyze the transactional state of producers in the cluster.",
    {
        "action": Flag(f"{', '.join(_ACTIONS[:-1])} or {_FORCE}.", "command"),
        "bootstrap-server": BOOTSTRAP,
        "command-config": COMMAND_CONFIG,
        "transactional-id": Flag("The transactional id.", "id"),
        "topic": Flag("The topic.", "topic"),
        "partition": Flag("The partition.", "partition", integer),
        "broker-id": Flag("The broker; default: the leader.", "id", integer),
        "start-offset": Flag("abort: the first offset of the transaction.", "offset", long),
        "producer-id": Flag("abort: the producer, without --start-offset.", "id", long),
        "producer-epoch": Flag("abort: the producer's epoch.", "epoch", integer),
        "coordinator-epoch": Flag("abort: the coordinator's epoch.", "epoch", integer),
        "max-transaction-timeout": Flag(
            "find-hanging: only transactions open for longer, in minutes.",
            "minutes",
            integer,
            default=15,
        ),
        "transactionalId": Flag(f"{_FORCE}: the transactional id.", "id"),
        "duration-filter": Flag(
            "Only transactions open for longer, in ms.", "ms", long, default=-1
        ),
        "transactional-id-pattern": Flag("Only ids that match.", "regex"),
    },
    program="kafka-transactions.sh",
)
_OF_TOOL = ("bootstrap-server", "command-config")
Rows = list[list[object]]
Table = tuple[list[str], Rows]
_REQUIRED = {
    "list": (),
    "describe": ("transactional-id",),
    "describe-producers": ("topic", "partition"),
    "abort": ("topic", "partition"),
    "find-hanging": (),
    _FORCE: ("transactionalId",),
}


def rewrite(command_line: list[str]) -> list[str]:
    """Read the subcommand as an option."""
    return first_as_option(command_line, _ACTIONS, _OF_TOOL, of_tool=_OF_TOOL)


def run(options: Options) -> int:
    """Run the subcommand."""
    action = action_of(options)
    require(options, "bootstrap-server")
    require(options, *_REQUIRED[action])
    try:
        with cluster(options) as brokers:
            result = _RUN[action](brokers, options)
    except NoSuchFile as error:
        reason = f"Failed to load admin client properties: {error}"
        err(f"{reason}. Enable debug logging for additional detail.")
        return 1
    except OttlaError as error:
        err(java_message(error))
        return 1
    if result is None:
        if options.is_json:
            as_json({"done": action})
        return 0
    heads, rows = result
    if options.is_json:
        as_json([dict(zip(heads, row, strict=True)) for row in rows])
    else:
        print_table(heads, rows)
    return 0


def _list(brokers: Brokers, options: Options) -> Table:
    try:
        listings = admin.read_transactions(
            brokers,
            min_duration_ms=options["duration-filter"],
            pattern=options["transactional-id-pattern"],
        )
    except ApiError as error:
        raise OttlaError(f"Failed to list transactions: {hanging.reason(error)}") from None
    rows: Rows = [
        [row.transactional_id, row.coordinator, row.producer_id, row.state] for row in listings
    ]
    return ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"], rows


def _describe(brokers: Brokers, options: Options) -> Table:
    transactional_id = options["transactional-id"]
    try:
        described = admin.describe_transaction(brokers, transactional_id)
    except ApiError as error:
        if error.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            error = ApiError(
                error.code,
                f"DescribeTransactions request for transactionalId `{transactional_id}` failed "
                "because the ID could not be found",
            )
        raise OttlaError(
            f"Failed to describe transaction state of transactional-id `{transactional_id}`: "
            f"{hanging.reason(error)}"
        ) from None
    start = described.start_ms
    is_open = start >= 0
    heads = ["CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState",
             "TransactionTimeoutMs", "CurrentTransactionStartTimeMs", "TransactionDurationMs",
             "TopicPartitions"]  # fmt: skip
    row: list[object] = [
        described.coordinator,
        transactional_id,
        described.producer_id,
        described.producer_epoch,
        described.state,
        described.timeout_ms,
        start if is_open else "None",
        time.time_ns() // 1_000_000 - start if is_open else "None",
        ",".join(f"{topic}-{partition}" for topic, partition in described.partitions),
    ]
    return heads, [row]


def _producers(brokers: Brokers, options: Options) -> Table:
    topic, partition, node_id = options["topic"], options["partition"], options["broker-id"]
    try:
        producers = admin.describe_producers(brokers, topic, partition, node_id=node_id)
    except ApiError as error:
        where = "leader" if node_id is None else f"broker {node_id}"
        raise OttlaError(
            f"Failed to describe producers for partition {topic}-{partition} on {where}: "
            f"{hanging.reason(error, (topic, partition))}"
        ) from None
    rows: Rows = [
        [
            row.producer_id,
            row.producer_epoch,
            row.coordinator_epoch,
            row.last_sequence,
            row.last_timestamp,
            "None" if row.transaction_start_offset < 0 else row.transaction_start_offset,
        ]
        for row in producers
    ]
    heads = ["ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence",
             "LastTimestamp", "CurrentTransactionStartOffset"]  # fmt: skip
    return heads, rows


def _force_terminate(brokers: Brokers, options: Options) -> None:
    transactional_id = options["transactionalId"]
    try:
        fence(brokers, transactional_id)
    except ApiError as error:
        raise OttlaError(
            f"Failed to force terminate transactionalId `{transactional_id}`: "
            f"{hanging.reason(error)}"
        ) from None


_RUN: Mapping[str, Callable[[Brokers, Options], Table | None]] = {
    "list": _list,
    "describe": _describe,
    "describe-producers": _producers,
    "abort": hanging.abort,
    "find-hanging": hanging.find,
    _FORCE: _force_terminate,
}
