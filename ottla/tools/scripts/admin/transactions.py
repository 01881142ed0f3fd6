"""`kafka-transactions` (org.apache.kafka.tools.TransactionsCommand).

Not done: `abort`, `find-hanging`, `force-terminate`.
"""

import time

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.admin.answers import check
from ottla.client.brokers import Brokers
from ottla.tools.scripts.exits import UsageError
from ottla.tools.scripts.flags import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    Flag,
    Options,
    Spec,
    integer,
    long,
)
from ottla.tools.scripts.printing import as_json, err
from ottla.tools.scripts.session import cluster
from ottla.tools.scripts.subcommands import (
    action_of,
    first_as_option,
    print_table,
    print_usage_error,
    require,
)
from ottla.wire.messages import describe_producers, describe_transactions, list_transactions

_ACTIONS = ("list", "describe", "describe-producers", "abort", "find-hanging", "force-terminate")
SPEC = Spec(
    "This tool is used to analyze the transactional state of producers in the cluster.",
    {
        "action": Flag("list, describe or describe-producers.", "command"),
        "bootstrap-server": BOOTSTRAP,
        "command-config": COMMAND_CONFIG,
        "transactional-id": Flag("The transactional id.", "id"),
        "topic": Flag("The topic.", "topic"),
        "partition": Flag("The partition.", "partition", integer),
        "broker-id": Flag("The broker; default: the leader.", "id", integer),
        "duration-filter": Flag(
            "Only transactions open for longer, in ms.", "ms", long, default=-1
        ),
        "transactional-id-pattern": Flag("Only ids that match.", "regex"),
    },
)
_VALUED = ("bootstrap-server", "command-config")
Rows = list[list[object]]


def rewrite(words: list[str]) -> list[str]:
    """Read the subcommand as an option."""
    return first_as_option(words, _ACTIONS, _VALUED)


def run(options: Options) -> int:
    """Run the subcommand."""
    action = action_of(options, "kafka-transactions.sh", _ACTIONS)
    require(options, "bootstrap-server")
    try:
        with cluster(options) as brokers:
            if action == "list":
                heads, rows = _list(brokers, options)
            elif action == "describe":
                require(options, "transactional-id")
                heads, rows = _describe(brokers, options["transactional-id"])
            elif action == "describe-producers":
                require(options, "topic", "partition")
                heads, rows = _producers(brokers, options)
            else:
                raise OttlaError(
                    f"{action} is not supported yet; a transaction ends at its timeout"
                )
    except OttlaError as error:
        err(str(error))
        return 1
    if options.is_json:
        as_json([dict(zip(heads, row, strict=True)) for row in rows])
    else:
        print_table(heads, rows)
    return 0


def on_parse_error(error: UsageError) -> int:
    """Print the error below a line of usage."""
    return print_usage_error("kafka-transactions.sh", error)


def _list(brokers: Brokers, options: Options) -> tuple[list[str], Rows]:
    request = list_transactions.ListTransactionsRequest(
        duration_filter=options["duration-filter"],
        transactional_id_pattern=options["transactional-id-pattern"],
    )
    rows: Rows = []
    for node_id in brokers.node_ids():
        response = brokers.ask_node(node_id, request, list_transactions.ListTransactionsResponse)
        check(response.error_code)
        rows += [
            [row.transactional_id, node_id, row.producer_id, row.transaction_state]
            for row in response.transaction_states
        ]
    return ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"], rows


def _describe(brokers: Brokers, transactional_id: str) -> tuple[list[str], Rows]:
    request = describe_transactions.DescribeTransactionsRequest(
        transactional_ids=[transactional_id]
    )

    def attempt() -> describe_transactions.TransactionState:
        response = brokers.ask_transaction_coordinator(
            transactional_id, request, describe_transactions.DescribeTransactionsResponse
        )
        (result,) = response.transaction_states
        if result.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise OttlaError(
                f"Failed to describe transaction state of transactional-id `{transactional_id}`: "
                f"DescribeTransactions request for transactionalId `{transactional_id}` failed because "
                "the ID could not be found. Enable debug logging for additional detail."
            )
        check(result.error_code, subject=f"Transactional id {transactional_id!r}")
        return result

    state = brokers.retry(attempt)
    start = state.transaction_start_time_ms
    is_open = start >= 0
    heads = ["CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState",
             "TransactionTimeoutMs", "CurrentTransactionStartTimeMs", "TransactionDurationMs",
             "TopicPartitions"]  # fmt: skip
    partitions = ",".join(
        f"{topic.topic}-{partition}" for topic in state.topics for partition in topic.partitions
    )
    row: list[object] = [
        brokers._coordinator(1, transactional_id),
        transactional_id,
        state.producer_id,
        state.producer_epoch,
        state.transaction_state,
        state.transaction_timeout_ms,
        start if is_open else "None",
        time.time_ns() // 1_000_000 - start if is_open else "None",
        partitions,
    ]
    return heads, [row]


def _producers(brokers: Brokers, options: Options) -> tuple[list[str], Rows]:
    key = options["topic"], options["partition"]
    node_id = options["broker-id"]
    if node_id is None:
        node_id = brokers.leaders([key])[key]
    request = describe_producers.DescribeProducersRequest(
        topics=[describe_producers.TopicRequest(name=key[0], partition_indexes=[key[1]])]
    )

    def attempt() -> Rows:
        response = brokers.ask_node(node_id, request, describe_producers.DescribeProducersResponse)
        (topic,) = response.topics
        (result,) = topic.partitions
        check(result.error_code, result.error_message)
        return [
            [
                row.producer_id,
                row.producer_epoch,
                row.coordinator_epoch,
                row.last_sequence,
                row.last_timestamp,
                "None" if row.current_txn_start_offset < 0 else row.current_txn_start_offset,
            ]
            for row in result.active_producers
        ]

    heads = ["ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence",
             "LastTimestamp", "CurrentTransactionStartOffset"]  # fmt: skip
    return heads, brokers.retry(attempt)
