"""The table of served APIs: one row per handler module. The advertised APIs come from here.

A row's module defines key and versions; the row has the other properties that the dispatcher needs.
"""

from types import ModuleType
from typing import NamedTuple

from ottla.server.context import AdvertisedApi
from ottla.server.fetch.shortcut import FetchShortcut
from ottla.server.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    allocate_producer_ids,
    alter_client_quotas,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    controlled_shutdown,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    get_telemetry_subscriptions,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leader_and_isr,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    push_telemetry,
    sasl_authenticate,
    sasl_handshake,
    stop_replica,
    sync_group,
    txn_offset_commit,
    update_features,
    update_metadata,
    write_txn_markers,
)
from ottla.server.produce.shortcut import ProduceShortcut


class Row(NamedTuple):
    """One served API."""

    handler: ModuleType
    # Advertised to clients instead of MIN_VERSION (KAFKA-18659: old librdkafka needs Produce 0).
    advertised_min: int | None = None
    # Later requests may be handled before its deferred response is sent.
    is_read_ahead: bool = False
    # The deferred response can be cancelled if the connection is lost.
    ends_with_connection: bool = False
    # A plain response depends only on the request, the image and the address of the broker.
    is_kept: bool = False
    # Advertised only while there are subscriptions to client metrics: clients that know the API use
    # it and log.
    is_for_client_metrics: bool = False
    # Sent by brokers only: client quotas do not apply.
    is_among_brokers: bool = False
    # Refused with CLUSTER_AUTHORIZATION_FAILED unless the sender has proven to be a broker.
    needs_proof: bool = False
    # Answers requests that differ from earlier ones only in records or offsets, without the
    # handler.
    shortcut: type[ProduceShortcut] | type[FetchShortcut] | None = None


ROWS: tuple[Row, ...] = (
    Row(produce, advertised_min=0, is_read_ahead=True, shortcut=ProduceShortcut),
    Row(fetch, ends_with_connection=True, shortcut=FetchShortcut),
    Row(list_offsets),
    Row(metadata, is_kept=True),
    Row(api_versions),
    Row(delete_records),
    Row(offset_for_leader_epoch),
    Row(describe_cluster),
    Row(offset_commit),
    Row(offset_fetch),
    Row(find_coordinator),
    Row(join_group),
    Row(heartbeat),
    Row(leave_group),
    Row(sync_group),
    Row(describe_groups),
    Row(list_groups),
    Row(delete_groups),
    Row(consumer_group_heartbeat),
    Row(consumer_group_describe),
    Row(init_producer_id),
    Row(add_partitions_to_txn),
    Row(add_offsets_to_txn),
    Row(end_txn),
    Row(write_txn_markers, is_among_brokers=True, is_read_ahead=True),
    Row(txn_offset_commit),
    Row(describe_transactions),
    Row(list_transactions),
    Row(update_features),
    Row(create_topics),
    Row(delete_topics),
    Row(create_partitions),
    Row(describe_configs),
    Row(alter_configs),
    Row(incremental_alter_configs),
    Row(offset_delete),
    Row(list_config_resources),
    Row(describe_client_quotas),
    Row(alter_client_quotas),
    Row(get_telemetry_subscriptions, is_for_client_metrics=True),
    Row(push_telemetry, is_for_client_metrics=True),
    Row(describe_log_dirs),
    Row(alter_replica_log_dirs),
    Row(describe_producers),
    Row(describe_topic_partitions),
    Row(elect_leaders),
    Row(alter_partition_reassignments),
    Row(list_partition_reassignments),
    Row(sasl_handshake),
    Row(sasl_authenticate),
    Row(leader_and_isr, is_among_brokers=True, needs_proof=True),
    Row(stop_replica, is_among_brokers=True, needs_proof=True),
    Row(update_metadata, is_among_brokers=True, needs_proof=True),
    Row(controlled_shutdown, is_among_brokers=True, needs_proof=True),
    Row(alter_partition, is_among_brokers=True, needs_proof=True),
    Row(allocate_producer_ids, is_among_brokers=True, needs_proof=True),
)


def advertised_apis(
    rows: tuple[Row, ...] = ROWS, *, with_client_metrics: bool = False
) -> tuple[AdvertisedApi, ...]:
    """Return the APIs for the ApiVersions response, by key."""
    apis = (
        AdvertisedApi(
            int(row.handler.API),
            row.handler.MIN_VERSION if row.advertised_min is None else row.advertised_min,
            row.handler.MAX_VERSION,
        )
        for row in rows
        if with_client_metrics or not row.is_for_client_metrics
    )
    return tuple(sorted(apis))
