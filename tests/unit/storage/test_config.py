"""The settings of a log and the values derived from them."""

import pytest

from ottla.cluster.options.option_tables import BROKER_OPTIONS, TOPIC_OPTIONS, topic_snapshot
from ottla.storage.config import LONG_MAX, LogConfig


def test_the_defaults_are_kafkas() -> None:
    """The defaults include 1 GiB or a week for each segment, a week of retention, 4 KiB between
    index entries.
    """
    config = LogConfig()
    assert (config.segment_bytes, config.segment_ms) == (1_073_741_824, 604_800_000)
    assert (config.retention_ms, config.retention_bytes) == (604_800_000, -1)
    assert (config.index_interval_bytes, config.segment_index_bytes) == (4096, 10_485_760)
    assert (config.max_message_bytes, config.file_delete_delay_ms) == (1_048_588, 60_000)
    assert config.flush_messages == config.flush_ms == LONG_MAX
    assert config.message_timestamp_after_max_ms == 3_600_000


@pytest.mark.parametrize(
    ("fields", "opens", "trusts"),
    [
        ({}, False, True),
        ({"cleanup_policy": frozenset({"compact"})}, True, False),
        ({"message_timestamp_before_max_ms": 1000}, True, False),
        ({"strict_records": True}, True, False),
        ({"message_timestamp_type": "LogAppendTime"}, False, False),
        (
            {
                "message_timestamp_type": "LogAppendTime",
                "message_timestamp_before_max_ms": 1000,
            },
            False,
            False,
        ),
        ({"compression_type": "lz4"}, False, False),
    ],
)
def test_records_are_read_only_if_a_topic_option_needs_it(
    fields: dict[str, object], opens: bool, trusts: bool
) -> None:
    """Keys, a lower bound for timestamps and the strict option require every record to be read."""
    config = LogConfig(**fields)  # type: ignore[arg-type]
    assert (config.opens_records, config.trusts_headers) == (opens, trusts)


@pytest.mark.parametrize(
    ("policy", "deletes", "compacts"),
    [({"delete"}, True, False), ({"compact"}, False, True), ({"compact", "delete"}, True, True)],
)
def test_cleanup_policy_selects_delete_and_compact(
    policy: set[str], deletes: bool, compacts: bool
) -> None:
    """Retention deletes segments only under the delete policy."""
    config = LogConfig(cleanup_policy=frozenset(policy))
    assert (config.deletes_by_retention, config.is_compacted) == (deletes, compacts)


@pytest.mark.parametrize(
    ("name", "codec"),
    [("producer", None), ("uncompressed", 0), ("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4)],
)
def test_the_compression_type_names_a_codec(name: str, codec: int | None) -> None:
    """`producer` keeps the sender's codec; every other name is a codec of the protocol."""
    assert LogConfig(compression_type=name).codec == codec


@pytest.mark.parametrize(
    ("name", "level"),
    [("producer", None), ("snappy", None), ("gzip", 4), ("lz4", 5), ("zstd", 6)],
)
def test_each_codec_has_its_own_level(name: str, level: int | None) -> None:
    """The level is the one of the topic's codec."""
    config = LogConfig(compression_type=name, gzip_level=4, lz4_level=5, zstd_level=6)
    assert config.codec_level == level


def test_settings_come_from_topic_options() -> None:
    """The option table and the settings have the same defaults, and topic options override them."""
    assert LogConfig.from_options(TOPIC_OPTIONS.parse({})) == LogConfig()
    settings = {
        "segment.ms": "1",
        "segment.jitter.ms": "2",
        "flush.messages": "6",
        "flush.on.ack": "true",
        "cleanup.policy": "compact,delete",
        "compression.type": "zstd",
        "message.timestamp.type": "LogAppendTime",
        "compression.gzip.level": "1",
        "compression.lz4.level": "2",
        "compression.zstd.level": "-3",
        "strict.records": "true",
    }
    assert LogConfig.from_options(TOPIC_OPTIONS.parse(settings)) == LogConfig(
        segment_ms=1,
        segment_jitter_ms=2,
        flush_messages=6,
        flush_on_ack=True,
        cleanup_policy=frozenset({"compact", "delete"}),
        compression_type="zstd",
        message_timestamp_type="LogAppendTime",
        gzip_level=1,
        lz4_level=2,
        zstd_level=-3,
        strict_records=True,
    )


def test_producer_expiration_comes_from_the_broker() -> None:
    """Producer expiration is an option of the broker only."""
    broker = BROKER_OPTIONS.parse({"producer.id.expiration.ms": "5"})
    assert LogConfig.from_options(topic_snapshot(broker, {})).producer_id_expiration_ms == 5


def test_internal_segment_bytes_overrides_segment_bytes() -> None:
    """Tests use internal.segment.bytes to roll segments below Kafka's minimum."""
    snapshot = TOPIC_OPTIONS.parse({"internal.segment.bytes": "500"})
    assert LogConfig.from_options(snapshot).segment_bytes == 500
