"""Known tutorials of Kafka Streams, second part: custom processors, stores and joins.

As in `kafka_examples.py`, only names were converted to snake_case. `test_kafka_tutorials.py` runs
them.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from ottla.streams import (
    AutoOffsetReset,
    Branched,
    BufferConfig,
    Consumed,
    ContextualFixedKeyProcessor,
    ContextualProcessor,
    FixedKeyRecord,
    Grouped,
    JoinWindows,
    KeyValue,
    KTable,
    Materialized,
    Named,
    Printed,
    ProcessorContext,
    ProcessorSupplier,
    Produced,
    PunctuationType,
    Record,
    RecordContext,
    Repartitioned,
    Serdes,
    SlidingWindows,
    StoreBuilder,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TableJoined,
    TimestampedRecord,
    TimeWindows,
    Topology,
    UsePartitionTimeOnInvalidTimestamp,
    ValueAndTimestamp,
    ValueTransformerWithKey,
    WindowedSerdes,
)

STRING, LONG, INTEGER, DOUBLE = Serdes.string(), Serdes.long(), Serdes.integer(), Serdes.double()
JSON = Serdes.json(dict)


class WordCountProcessor(ContextualProcessor[str, str, str, str]):
    """Count words and forward all counts once a second (WordCountProcessorDemo)."""

    def init(self, context: ProcessorContext) -> None:
        """Schedule the punctuator and get the store."""
        super().init(context)
        context.schedule(timedelta(seconds=1), PunctuationType.STREAM_TIME, self.tell)
        self.kv_store = context.get_state_store("Counts")

    def tell(self, timestamp: int) -> None:
        """Forward all counts."""
        with self.kv_store.all() as iterator:
            while iterator.has_next():
                entry = iterator.next()
                self.context.forward(Record(entry.key, str(entry.value), timestamp))

    def process(self, record: Record[str, str]) -> None:
        """Count the words of the record."""
        for word in record.value.lower().split():
            old_value = self.kv_store.get(word)
            self.kv_store.put(word, 1 if old_value is None else old_value + 1)


def word_count_processor() -> Topology:
    """Build a topology with the Processor API (WordCountProcessorDemo)."""
    counts = Stores.key_value_store_builder(
        Stores.in_memory_key_value_store("Counts"), Serdes.string(), Serdes.integer()
    )
    return (
        Topology()
        .add_source("Source", "streams-plaintext-input", key=STRING, value=STRING)
        .add_processor("Process", WordCountProcessor, "Source")
        .add_state_store(counts, "Process")
        .add_sink("Sink", "streams-wordcount-processor-output", "Process", key=STRING, value=STRING)
    )


class DeduplicationSupplier(ProcessorSupplier[str, dict[str, Any], str, dict[str, Any]]):
    """Drop events that repeat within a window (EventDeduplicationLambdaIntegrationTest)."""

    def __init__(self, window: timedelta) -> None:
        self.window = window

    def get(self) -> "Deduplication":
        """Return a new processor."""
        return Deduplication(int(self.window.total_seconds() * 1000))

    def stores(self) -> Iterable[StoreBuilder]:
        """Return the store."""
        supplier = Stores.persistent_window_store("eventId-store", self.window, self.window, False)
        return {Stores.window_store_builder(supplier, Serdes.string(), Serdes.long())}


class Deduplication(ContextualProcessor[str, dict[str, Any], str, dict[str, Any]]):
    """Remember events by their id."""

    def __init__(self, duration_ms: int) -> None:
        self.left_ms = duration_ms // 2
        self.right_ms = duration_ms - self.left_ms

    def process(self, record: Record[str, dict[str, Any]]) -> None:
        """Forward a new event; put an old one again to extend its window."""
        store = self.context.get_state_store("eventId-store")
        event_id, time = record.value["id"], record.timestamp
        with store.fetch(event_id, time - self.left_ms, time + self.right_ms) as iterator:
            is_duplicate = iterator.has_next()
        if not is_duplicate:
            self.context.forward(record)
        store.put(event_id, time, time)


def deduplication() -> Topology:
    """Drop duplicates by an id within the event."""
    builder = StreamsBuilder()
    stream = builder.stream("events", Consumed.with_(STRING, JSON))
    stream.process(DeduplicationSupplier(timedelta(minutes=10)), Named.as_("deduplicate")).to(
        "unique", Produced.with_(STRING, JSON)
    )
    return builder.build()


class EnrichOrWait(ContextualFixedKeyProcessor[str, str, str]):
    """Join with a table whose entry may come later (CustomStreamTableJoinIntegrationTest)."""

    def init(self, context: ProcessorContext) -> None:
        """Get both stores and schedule a check each minute."""
        super().init(context)
        self.table = context.get_state_store("users")
        self.waiting = context.get_state_store("waiting")
        context.schedule("1 min", PunctuationType.WALL_CLOCK_TIME, self.look_again)

    def process(self, record: FixedKeyRecord[str, str]) -> None:
        """Join the record, or store it until its entry comes."""
        if not self.join(record):
            self.waiting.put(record.key, ValueAndTimestamp.make(record.value, record.timestamp))

    def join(self, record: FixedKeyRecord[str, str]) -> bool:
        """Forward the joined record if there is an entry; return whether there is."""
        user = ValueAndTimestamp.get_value_or_null(self.table.get(record.key))
        if user is not None:
            self.context.forward(record.with_value(f"{record.value} by {user}"))
        return user is not None

    def look_again(self, timestamp: int) -> None:
        """Join the waiting records whose entry has come."""
        for key, waited in self.waiting.all():
            if self.join(Record(key, waited.value, waited.timestamp)):
                self.waiting.delete(key)


def custom_join() -> Topology:
    """Join a stream with a table in a custom processor."""
    builder = StreamsBuilder()
    builder.table("users-topic", Consumed.with_(STRING, STRING), Materialized.as_("users"))
    supplier = Stores.persistent_timestamped_key_value_store("waiting")
    builder.add_state_store(Stores.timestamped_key_value_store_builder(supplier, STRING, STRING))
    builder.stream("clicks", Consumed.with_(STRING, STRING)).process_values(
        EnrichOrWait, Named.as_("enrich-or-wait"), "users", "waiting"
    ).to("enriched", Produced.with_(STRING, STRING))
    return builder.build()


def music_charts() -> Topology:
    """Keep the five most played songs by genre (KafkaMusicExample)."""
    builder = StreamsBuilder()
    plays = builder.stream("play-events", Consumed.with_(STRING, JSON))
    songs = builder.table("song-feed", Consumed.with_(LONG, JSON), Materialized.as_("all-songs"))
    by_song = plays.filter(lambda region, event: event["duration"] >= 30_000).map(
        lambda key, value: KeyValue.pair(value["song_id"], value)
    )
    song_plays = by_song.join(songs, lambda play, song: song)
    counts: KTable[dict[str, Any], int] = song_plays.group_by(
        lambda song_id, song: song, Grouped.with_(JSON, JSON)
    ).count(Materialized.as_("song-play-count").with_value_serde(LONG).with_logging_enabled({}))

    def add(genre: str, value: dict[str, Any], top: list[Any]) -> list[Any]:
        return sorted([*top, value], key=lambda each: -each["plays"])[:5]

    def remove(genre: str, value: dict[str, Any], top: list[Any]) -> list[Any]:
        return [row for row in top if row["song"] != value["song"]]

    counts.group_by(
        lambda song, plays: KeyValue.pair(song["genre"], {"song": song["name"], "plays": plays}),
        Grouped.with_(STRING, JSON),
    ).aggregate(
        list,
        add,
        remove,
        Materialized.as_(Stores.in_memory_key_value_store("top-five-songs-by-genre"))
        .with_key_serde(STRING)
        .with_value_serde(Serdes.json(list)),
    )
    return builder.build()


def dynamic_topics() -> Topology:
    """Choose the topic of each order by its type (how-to: dynamic output topics)."""
    builder = StreamsBuilder()
    orders = builder.stream(
        ["orders-eu", "orders-us"],
        Consumed.with_(STRING, JSON)
        .with_offset_reset_policy(AutoOffsetReset.earliest())
        .with_name("orders"),
    )
    orders.print(Printed.to_sys_out().with_label("orders").with_name("show"))

    def by_sort(key: str, order: dict[str, Any], context: RecordContext) -> str:
        return f"special-{context.topic}" if order["sort"] == "special" else "regular"

    branches = (
        orders.split(Named.as_("by-"))
        .branch(lambda key, order: order["amount"] > 100, Branched.as_("large"))
        .branch(
            lambda key, order: order["amount"] < 0,
            Branched.with_consumer(lambda wrong: wrong.to("wrong", Produced.with_(STRING, JSON))),
        )
        .default_branch(
            Branched.with_function(lambda small: small.peek(lambda k, v: None), "small")
        )
    )
    branches["by-large"].merge(branches["by-small"], Named.as_("all")).to(
        by_sort, Produced.with_(STRING, JSON).with_name("to-topics")
    )
    return builder.build()


def temperatures() -> Topology:
    """Average temperatures in sliding windows, final results only (how-to: sliding windows,
    suppress).
    """
    builder = StreamsBuilder()
    windows = SlidingWindows.of_time_difference_and_grace(timedelta(minutes=1), timedelta(0))

    def add(key: str, value: float, aggregate: dict[str, Any]) -> dict[str, Any]:
        return {"sum": aggregate["sum"] + value, "count": aggregate["count"] + 1}

    averages = (
        builder.stream("temps", Consumed.with_(STRING, DOUBLE))
        .group_by_key()
        .windowed_by(windows)
        .aggregate(lambda: {"sum": 0.0, "count": 0}, add, Materialized.with_(Serdes.string(), JSON))
        .suppress(Suppressed.until_window_closes(Suppressed.BufferConfig.unbounded()))
        .map_values(lambda aggregate: float(aggregate["sum"] / aggregate["count"]))
    )
    averages.to_stream().to(
        "averages",
        Produced.with_(WindowedSerdes.time_windowed_serde_from(str, "1 min"), DOUBLE),
    )
    return builder.build()


def logins() -> Topology:
    """Count logins of several applications in one table (how-to: cogroup)."""
    builder = StreamsBuilder()
    consumed = Consumed.with_(STRING, JSON)

    def add(app: str, login: dict[str, Any], aggregate: dict[str, Any]) -> dict[str, Any]:
        return {**aggregate, login["user"]: aggregate.get(login["user"], 0) + 1}

    one, two, three = (builder.stream(f"app-{n}", consumed).group_by_key() for n in "123")
    (
        one.cogroup(add)
        .cogroup(two, add)
        .cogroup(three, add)
        .windowed_by(TimeWindows.of_size_and_grace("1 h", "5 min"))
        .aggregate(dict, Named.as_("logins"), Materialized.with_(STRING, JSON))
        .suppress(Suppressed.until_time_limit("1 ms", BufferConfig.max_records(1000)))
        .to_stream(lambda windowed, value: windowed.key)
        .to("login-rollup", Produced.with_(STRING, JSON))
    )
    return builder.build()


def music_interest() -> Topology:
    """Join album sales with their albums by foreign key (how-to: foreign-key joins)."""
    builder = StreamsBuilder()
    albums = builder.table("albums", Consumed.with_(LONG, JSON))
    purchases = builder.table("track-purchases", Consumed.with_(LONG, JSON))
    purchases.join(
        albums,
        lambda purchase: purchase["album"],
        lambda track, album: {"genre": album["genre"], "artist": album["artist"], **track},
        TableJoined.as_("interest"),
        Materialized.as_("interest-store").with_key_serde(LONG).with_value_serde(JSON),
    ).to_stream().to("music-interest", Produced.with_(LONG, JSON))
    return builder.build()


class TtlEmitter(ContextualProcessor[str, str, str, str | None]):
    """Send a tombstone for each key without recent records (how-to: KTable with a time to live)."""

    def __init__(self, max_age: timedelta, scan: timedelta) -> None:
        self.max_age_ms = max_age // timedelta(milliseconds=1)
        self.scan = scan

    def init(self, context: ProcessorContext) -> None:
        """Schedule the search for old keys."""
        super().init(context)
        self.state = context.get_state_store("ttl")
        self.scheduled = context.schedule(self.scan, PunctuationType.STREAM_TIME, self.scan_keys)

    def scan_keys(self, timestamp: int) -> None:
        """Send tombstones for old keys."""
        for entry in self.state.all():
            if entry.value < timestamp - self.max_age_ms:
                self.context.forward(Record(entry.key, None, timestamp))
                self.state.delete(entry.key)

    def process(self, record: Record[str, str]) -> None:
        """Store when the key was seen."""
        self.state.put(record.key, record.timestamp)

    def close(self) -> None:
        """Release nothing."""
        self.scheduled.cancel()


def table_ttl() -> Topology:
    """Remove old entries from a table."""
    builder = StreamsBuilder()
    supplier = Stores.persistent_key_value_store("ttl")
    builder.add_state_store(Stores.key_value_store_builder(supplier, STRING, LONG))
    table = builder.table("table", Consumed.with_(STRING, STRING), Materialized.as_("table-store"))
    table.to_stream().process(
        lambda: TtlEmitter(timedelta(minutes=2), timedelta(seconds=10)), "ttl"
    ).to("table", Produced.with_(STRING, STRING))
    return builder.build()


class OrderTime(UsePartitionTimeOnInvalidTimestamp):
    """Extract the time of the order (how-to: custom timestamp extractors)."""

    def __call__(self, record: TimestampedRecord, partition_time: int) -> int:
        """Return the order's time, or the partition's time."""
        return int(record.value.get("time", partition_time))


def clicks_and_impressions() -> Topology:
    """Join two streams within five minutes by another key, with extracted times."""
    builder = StreamsBuilder()
    consumed = Consumed.with_(STRING, JSON, OrderTime, AutoOffsetReset.earliest())
    clicks, shows = builder.stream("clicks", consumed), builder.stream("impressions", consumed)
    windows = JoinWindows.of_time_difference_and_grace("5 min", "1 min").before(timedelta(0))
    shows.select_key(lambda k, v: str(v["ad"])).repartition(
        Repartitioned.with_(STRING, JSON).with_name("shows").with_number_of_partitions(1)
    ).left_join(
        clicks.select_key(lambda k, v: str(v["ad"])).repartition(Repartitioned.as_("clicks")),
        lambda ad, show, click: {"ad": ad, "clicked": click is not None},
        windows,
        StreamJoined.with_(STRING, JSON, JSON).with_name("shown").with_store_name("shown-stores"),
    ).to("results", Produced.with_(STRING, JSON))
    return builder.build()


class SinceLast(ValueTransformerWithKey[str, int, int | None]):
    """Return the change of an entry since its last update (KTable.transformValues)."""

    def transform(self, read_only_key: str, value: int) -> int | None:
        """Return the difference."""
        store = self.context.get_state_store("last")
        last = store.get(read_only_key) or 0
        store.put(read_only_key, value)
        return None if value is None else value - last


def differences() -> Topology:
    """Forward the changes of entries of a materialized table."""
    builder = StreamsBuilder()
    builder.add_state_store(Stores.key_value("last", STRING, INTEGER))
    levels = builder.table("levels", Consumed.with_(STRING, INTEGER))
    materialized: Materialized[str, int] = Materialized.with_(STRING, INTEGER)
    changes = levels.transform_values(SinceLast, materialized, Named.as_("since"), "last")
    changes.filter_not(lambda key, value: value == 0).to_stream().to(
        "changes", Produced.with_(STRING, INTEGER)
    )
    return builder.build()
