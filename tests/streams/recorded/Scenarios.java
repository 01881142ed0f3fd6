/*
 * Plays scripted events on Apache Kafka Streams' own TopologyTestDriver, for record.py.
 *
 * Standard input: a line "scenario NAME" with optional parameters "a=1 b=2" (Shapes.java), then events: "pipe TOPIC
 * KEY TIMESTAMP VALUE" ("-" is null) with optional headers "h=v,i=w", or "clock MILLISECONDS"; a line "play" plays the
 * scenario immediately. Standard output: the description of the topology, then each event, followed by the records
 * that it wrote, one per line: "< TOPIC KEY TIMESTAMP VALUE" and the headers "{h=v}" if there are any.
 */

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.errors.DefaultProductionExceptionHandler;
import org.apache.kafka.streams.errors.ErrorHandlerContext;
import org.apache.kafka.streams.errors.LogAndContinueExceptionHandler;
import org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler;
import org.apache.kafka.streams.errors.ProductionExceptionHandler.SerializationExceptionOrigin;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.test.TestRecord;

public class Scenarios {
    static final Map<String, Consumer<StreamsBuilder>> ALL = new HashMap<>();
    static final Map<String, Consumer<Topology>> TOPOLOGIES = new HashMap<>();
    /** The parameters of the current scenario. */
    static final Map<String, String> given = new HashMap<>();

    static Duration ms(long count) {
        return Duration.ofMillis(count);
    }

    static String pair(Object left, Object right) {
        return left + "+" + right;
    }

    static KStream<String, String> in(StreamsBuilder b) {
        return b.stream("in");
    }

    static <K, V> void out(KTable<K, V> table) {
        out(table.toStream());
    }

    static <K, V> void out(KStream<K, V> stream) {
        stream.map((key, value) -> new KeyValue<>(
            key == null ? null : key.toString(), value == null ? null : value.toString())).to("out");
    }

    static KGroupedStream<String, String> grouped(StreamsBuilder b) {
        return in(b).groupByKey(Grouped.with(Serdes.String(), Serdes.String()));
    }

    static final Initializer<String> EMPTY = () -> "";
    static final Aggregator<String, String, String> APPEND = (key, value, sum) -> sum + "." + value;
    static final Merger<String, String> MERGE = (key, one, two) -> one + two;
    static final Reducer<String> REDUCE = (one, two) -> one + "." + two;

    static void stateless() {
        ALL.put("filter", b -> in(b).filter((k, v) -> !"b".equals(v)).filterNot((k, v) -> "c".equals(k)).to("out"));
        ALL.put("map", b -> in(b).map((k, v) -> new KeyValue<>(v, k)).to("out"));
        ALL.put("map_values", b -> in(b).mapValues(v -> v + "!").mapValues((k, v) -> k + v).to("out"));
        ALL.put("flat_map", b -> in(b).flatMap((k, v) ->
            List.of(new KeyValue<>(k, v), new KeyValue<>(v, k))).to("out"));
        ALL.put("flat_map_values", b -> in(b).flatMapValues(v -> v == null ? List.of() : List.of(v, v)).to("out"));
        ALL.put("select_key", b -> in(b).selectKey((k, v) -> v).peek((k, v) -> { }).to("out"));
        ALL.put("merge", b -> in(b).merge(b.<String, String>stream("other").mapValues(v -> "o" + v)).to("out"));
        ALL.put("split", b -> {
            Map<String, KStream<String, String>> branches = in(b).split(Named.as("by-"))
                .branch((k, v) -> "a".equals(k), Branched.as("a"))
                .branch((k, v) -> "b".equals(k), Branched.withConsumer(s -> s.to("out-b")))
                .branch((k, v) -> "x".equals(v), Branched.withFunction(s -> s.mapValues(v -> v + "!"), "x"))
                .defaultBranch();
            for (String name : new TreeSet<>(branches.keySet())) {
                branches.get(name).to("out-" + name);
            }
        });
        ALL.put("repartition", b -> in(b).selectKey((k, v) -> v).repartition(Repartitioned.as("again")).to("out"));
        ALL.put("to_extractor", b -> in(b).filter((k, v) -> v != null).to((k, v, context) -> "out-" + v));
        ALL.put("pattern", b -> b.<String, String>stream(Pattern.compile("in.*")).to("out"));
        ALL.put("same_topic_twice", b -> {
            in(b).filter((k, v) -> "a".equals(k)).to("out-a");
            in(b).mapValues(v -> v + "!").to("out-b");
        });
    }

    static void aggregates() {
        ALL.put("count", b -> out(grouped(b).count()));
        ALL.put("count_named", b -> out(grouped(b).count(Named.as("counting"), Materialized.as("counts"))));
        ALL.put("count_unnamed_store", b -> out(grouped(b).count(Materialized.with(Serdes.String(), Serdes.Long()))));
        ALL.put("reduce", b -> out(grouped(b).reduce(REDUCE)));
        ALL.put("aggregate", b -> out(grouped(b).aggregate(EMPTY, APPEND)));
        ALL.put("aggregate_remove", b -> out(grouped(b).aggregate(EMPTY,
            (k, v, sum) -> "x".equals(v) ? null : sum + v)));
        ALL.put("group_by", b -> out(in(b).groupBy((k, v) -> v).count()));
        ALL.put("group_by_named_twice", b -> {
            KGroupedStream<String, String> group = in(b).groupBy((k, v) -> v, Grouped.as("by-value"));
            out(group.count());
            group.reduce(REDUCE).toStream().to("out-reduced");
        });
        ALL.put("cogroup", b -> out(grouped(b).cogroup(APPEND)
            .cogroup(b.<String, String>stream("other").groupByKey(), (k, v, sum) -> sum + "/" + v)
            .aggregate(EMPTY)));
        ALL.put("cogroup_windowed", b -> out(grouped(b).cogroup(APPEND)
            .cogroup(b.<String, String>stream("other").groupBy((k, v) -> k), (k, v, sum) -> sum + "/" + v)
            .windowedBy(TimeWindows.ofSizeAndGrace(ms(10), ms(5))).aggregate(EMPTY)));
        ALL.put("cogroup_sessions", b -> out(grouped(b).cogroup(APPEND)
            .cogroup(b.<String, String>stream("other").groupByKey(), (k, v, sum) -> sum + "/" + v)
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(ms(5), ms(5))).aggregate(EMPTY, MERGE)));
    }

    static void windows() {
        ALL.put("tumbling_count", b -> out(grouped(b).windowedBy(TimeWindows.ofSizeWithNoGrace(ms(10))).count()));
        ALL.put("tumbling_grace_reduce", b -> out(grouped(b)
            .windowedBy(TimeWindows.ofSizeAndGrace(ms(10), ms(7))).reduce(REDUCE)));
        ALL.put("hopping_aggregate", b -> out(grouped(b)
            .windowedBy(TimeWindows.ofSizeAndGrace(ms(10), ms(5)).advanceBy(ms(4))).aggregate(EMPTY, APPEND)));
        ALL.put("unlimited_count", b -> out(grouped(b).windowedBy(UnlimitedWindows.of().startOn(Instant.ofEpochMilli(5))).count()));
        ALL.put("sliding_aggregate", b -> out(grouped(b)
            .windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(ms(6), ms(8))).aggregate(EMPTY, APPEND)));
        ALL.put("sliding_count", b -> out(grouped(b)
            .windowedBy(SlidingWindows.ofTimeDifferenceWithNoGrace(ms(10))).count()));
        ALL.put("session_count", b -> out(grouped(b)
            .windowedBy(SessionWindows.ofInactivityGapWithNoGrace(ms(5))).count()));
        ALL.put("session_aggregate", b -> out(grouped(b)
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(ms(4), ms(12))).aggregate(EMPTY, APPEND, MERGE)));
        ALL.put("session_reduce", b -> out(grouped(b)
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(ms(4), ms(6))).reduce(REDUCE)));
        ALL.put("tumbling_on_close", b -> out(grouped(b).windowedBy(TimeWindows.ofSizeAndGrace(ms(10), ms(3)))
            .emitStrategy(EmitStrategy.onWindowClose()).aggregate(EMPTY, APPEND)));
        ALL.put("tumbling_on_close_throttled", b -> out(grouped(b).windowedBy(TimeWindows.ofSizeAndGrace(ms(10), ms(3)))
            .emitStrategy(EmitStrategy.onWindowClose()).count()));
        ALL.put("hopping_on_close", b -> out(grouped(b).windowedBy(TimeWindows.ofSizeAndGrace(ms(10), ms(3)).advanceBy(ms(5)))
            .emitStrategy(EmitStrategy.onWindowClose()).count()));
        ALL.put("sliding_on_close", b -> out(grouped(b).windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(ms(6), ms(3)))
            .emitStrategy(EmitStrategy.onWindowClose()).aggregate(EMPTY, APPEND)));
        ALL.put("session_on_close", b -> out(grouped(b).windowedBy(SessionWindows.ofInactivityGapAndGrace(ms(4), ms(3)))
            .emitStrategy(EmitStrategy.onWindowClose()).aggregate(EMPTY, APPEND, MERGE)));
        ALL.put("suppress_window", b -> out(grouped(b).windowedBy(TimeWindows.ofSizeAndGrace(ms(10), ms(4))).count()
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))));
        ALL.put("suppress_session", b -> out(grouped(b).windowedBy(SessionWindows.ofInactivityGapAndGrace(ms(4), ms(4))).count()
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()).withName("last"))));
        ALL.put("suppress_time", b -> out(b.<String, String>table("in")
            .suppress(Suppressed.untilTimeLimit(ms(8), Suppressed.BufferConfig.unbounded()))));
        ALL.put("suppress_records", b -> out(grouped(b).count()
            .suppress(Suppressed.untilTimeLimit(ms(1000), Suppressed.BufferConfig.maxRecords(2)))));
        ALL.put("suppress_bytes", b -> out(grouped(b).reduce(REDUCE)
            .suppress(Suppressed.untilTimeLimit(ms(1000), Suppressed.BufferConfig.maxBytes(100)))));
    }

    static KTable<String, String> left(StreamsBuilder b) {
        return b.table("in");
    }

    static KTable<String, String> right(StreamsBuilder b) {
        return b.table("other");
    }

    static String fk(String value) {
        return value == null || "x".equals(value) ? null : value;
    }

    static Materialized<String, String, KeyValueStore<org.apache.kafka.common.utils.Bytes, byte[]>> versions(String name) {
        return Materialized.as(Stores.persistentVersionedKeyValueStore(name, ms(10)));
    }

    static void tables() {
        ALL.put("table", b -> out(left(b)));
        ALL.put("table_store", b -> out(b.table("in", Materialized.<String, String, KeyValueStore<org.apache.kafka.common.utils.Bytes, byte[]>>as("kept"))));
        ALL.put("table_versioned", b -> out(b.table("in", versions("kept"))));
        ALL.put("to_table", b -> out(in(b).selectKey((k, v) -> v).toTable()));
        ALL.put("to_table_store", b -> out(in(b).toTable(Materialized.as("kept"))));
        ALL.put("table_filter", b -> out(left(b).filter((k, v) -> !"b".equals(v))));
        ALL.put("table_filter_stored", b -> out(b.table("in", Materialized.<String, String, KeyValueStore<org.apache.kafka.common.utils.Bytes, byte[]>>as("kept"))
            .filterNot((k, v) -> "b".equals(v), Materialized.as("filtered"))));
        ALL.put("table_filter_kept", b -> out(b.table("in", Materialized.<String, String, KeyValueStore<org.apache.kafka.common.utils.Bytes, byte[]>>as("kept"))
            .filter((k, v) -> !"b".equals(v))));
        ALL.put("table_map_values", b -> out(left(b).mapValues(v -> v + "!").mapValues((k, v) -> k + v, Materialized.as("mapped"))));
        ALL.put("table_group_count", b -> out(left(b).groupBy((k, v) -> new KeyValue<>(v, k)).count()));
        ALL.put("table_group_reduce", b -> out(left(b).groupBy((k, v) -> new KeyValue<>(v, k))
            .reduce((one, two) -> one + "+" + two, (one, two) -> one + "-" + two)));
        ALL.put("table_group_aggregate", b -> out(left(b).filter((k, v) -> !"b".equals(v)).groupBy((k, v) -> new KeyValue<>(v, k), Grouped.as("grouped"))
            .aggregate(EMPTY, (k, v, sum) -> sum + "+" + v, (k, v, sum) -> sum + "-" + v, Named.as("sums"))));
        ALL.put("count_of_counts", b -> out(grouped(b).count().groupBy((k, v) -> new KeyValue<>(v.toString(), k)).count()));
        ALL.put("window_regrouped", b -> out(grouped(b).windowedBy(TimeWindows.ofSizeWithNoGrace(ms(10))).count(Materialized.as("windows"))
            .mapValues(v -> v.toString()).groupBy((k, v) -> new KeyValue<>(v, k.key())).count()));
        ALL.put("session_regrouped", b -> out(grouped(b).windowedBy(SessionWindows.ofInactivityGapAndGrace(ms(4), ms(4))).count()
            .mapValues(v -> v.toString()).groupBy((k, v) -> new KeyValue<>(v, k.key())).count()));
    }

    static void joins() {
        ALL.put("table_join", b -> out(left(b).join(right(b), Scenarios::pair)));
        ALL.put("table_left_join", b -> out(left(b).leftJoin(right(b), Scenarios::pair)));
        ALL.put("table_outer_join", b -> out(left(b).outerJoin(right(b), Scenarios::pair, Named.as("both"), Materialized.as("joined"))));
        ALL.put("table_join_chain", b -> out(left(b).filter((k, v) -> !"x".equals(v)).join(right(b).mapValues(v -> v + "!"), Scenarios::pair)
            .leftJoin(grouped2(b).count(), Scenarios::pair).groupBy((k, v) -> new KeyValue<>(v, k)).count()));
        ALL.put("table_join_versioned", b -> out(b.table("in", versions("l")).join(b.table("other", versions("r")), Scenarios::pair)));
        ALL.put("foreign_key_join", b -> out(left(b).join(right(b), Scenarios::fk, Scenarios::pair)));
        ALL.put("foreign_key_left_join", b -> out(left(b).leftJoin(right(b), Scenarios::fk, Scenarios::pair)));
        ALL.put("foreign_key_named", b -> out(left(b).join(right(b), Scenarios::fk, Scenarios::pair, TableJoined.as("fk"), Materialized.as("joined"))));
        ALL.put("stream_table_join", b -> in(b).join(right(b), Scenarios::pair).to("out"));
        ALL.put("stream_table_left_join", b -> in(b).leftJoin(right(b), Scenarios::pair).to("out"));
        ALL.put("stream_table_rekeyed", b -> in(b).selectKey((k, v) -> v).leftJoin(right(b), Scenarios::pair).to("out"));
        ALL.put("stream_table_versioned", b -> in(b).join(b.table("other", versions("kept")), Scenarios::pair).to("out"));
        ALL.put("stream_table_grace", b -> in(b).join(b.table("other", versions("kept")), Scenarios::pair,
            Joined.<String, String, String>with(Serdes.String(), Serdes.String(), Serdes.String()).withGracePeriod(ms(6))).to("out"));
        ALL.put("stream_global_join", b -> in(b).join(b.<String, String>globalTable("other"), (k, v) -> v, Scenarios::pair).to("out"));
        ALL.put("stream_global_left_join", b -> in(b).leftJoin(b.<String, String>globalTable("other"), (k, v) -> v, Scenarios::pair).to("out"));
        ALL.put("stream_join", b -> in(b).join(other(b), Scenarios::pair, JoinWindows.ofTimeDifferenceWithNoGrace(ms(5))).to("out"));
        ALL.put("stream_join_asymmetric", b -> in(b).join(other(b), Scenarios::pair, JoinWindows.ofTimeDifferenceAndGrace(ms(5), ms(6)).before(ms(2)).after(ms(8))).to("out"));
        ALL.put("stream_left_join", b -> in(b).leftJoin(other(b), Scenarios::pair, JoinWindows.ofTimeDifferenceWithNoGrace(ms(5))).to("out"));
        ALL.put("stream_left_join_grace", b -> in(b).leftJoin(other(b), Scenarios::pair, JoinWindows.ofTimeDifferenceAndGrace(ms(3), ms(6)).before(ms(1)), StreamJoined.as("kept")).to("out"));
        ALL.put("stream_outer_join", b -> in(b).outerJoin(other(b), Scenarios::pair, JoinWindows.ofTimeDifferenceAndGrace(ms(4), ms(2))).to("out"));
        ALL.put("stream_outer_join_named", b -> in(b).outerJoin(other(b), Scenarios::pair, JoinWindows.ofTimeDifferenceAndGrace(ms(4), ms(2)).after(ms(1)), StreamJoined.<String, String, String>with(Serdes.String(), Serdes.String(), Serdes.String()).withName("joining")).to("out"));
        ALL.put("stream_outer_join_throttled", b -> in(b).outerJoin(other(b), Scenarios::pair, JoinWindows.ofTimeDifferenceAndGrace(ms(4), ms(2))).to("out"));
        ALL.put("stream_join_rekeyed", b -> in(b).selectKey((k, v) -> v).leftJoin(other(b).map((k, v) -> new KeyValue<>(v, k)), Scenarios::pair, JoinWindows.ofTimeDifferenceWithNoGrace(ms(5))).to("out"));
        ALL.put("stream_self_join", b -> {
            KStream<String, String> stream = in(b);
            stream.join(stream, Scenarios::pair, JoinWindows.ofTimeDifferenceWithNoGrace(ms(3))).to("out");
        });
        ALL.put("rekeyed_joined_twice", b -> {
            KStream<String, String> stream = in(b).selectKey((k, v) -> v);
            stream.join(right(b), Scenarios::pair).to("out-one");
            stream.leftJoin(b.<String, String>table("third"), Scenarios::pair).to("out-two");
        });
    }

    static KStream<String, String> other(StreamsBuilder b) {
        return b.stream("other");
    }

    static KGroupedStream<String, String> grouped2(StreamsBuilder b) {
        return b.<String, String>stream("third").groupByKey();
    }

    static class Counter extends ContextualProcessor<String, String, String, String> {
        KeyValueStore<String, String> store;

        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            store = context.getStateStore("seen");
            context.schedule(ms(10), PunctuationType.STREAM_TIME, this::tick);
            context.schedule(ms(100), PunctuationType.WALL_CLOCK_TIME, now -> context.forward(new Record<>("clock", "" + now, now)));
        }

        void tick(long now) {
            List<String> all = new ArrayList<>();
            store.all().forEachRemaining(entry -> all.add(entry.key + entry.value));
            context().forward(new Record<>("tick", String.join(".", all), now));
        }

        @Override
        public void process(Record<String, String> record) {
            if (record.key() == null) {
                return;
            }
            if (record.value() == null) {
                store.delete(record.key());
                return;
            }
            String old = store.get(record.key());
            store.put(record.key(), old == null ? record.value() : old + record.value());
        }
    }

    static class Twice extends ContextualFixedKeyProcessor<String, String, String> {
        @Override
        public void process(FixedKeyRecord<String, String> record) {
            context().forward(record.withValue(record.value() + "1"));
            context().forward(record.withValue(record.value() + "2").withTimestamp(record.timestamp() + 1));
        }
    }

    static class Numbered implements ValueTransformerWithKey<String, String, String> {
        KeyValueStore<String, String> store;

        @Override
        public void init(org.apache.kafka.streams.processor.ProcessorContext context) {
            store = context.getStateStore("seen");
        }

        @Override
        public String transform(String key, String value) {
            String old = store.get(key);
            store.put(key, old == null ? "i" : old + "i");
            return value == null ? null : value + store.get(key);
        }

        @Override
        public void close() {
        }
    }

    static void seen(StreamsBuilder b) {
        b.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("seen"), Serdes.String(), Serdes.String()));
    }

    static void processors() {
        ALL.put("process_values", b -> in(b).processValues(Twice::new).groupByKey().count().toStream().mapValues(v -> v.toString()).to("out"));
        ALL.put("transform_values", b -> {
            seen(b);
            out(left(b).transformValues(Numbered::new, "seen"));
        });
        ALL.put("transform_values_stored", b -> {
            seen(b);
            out(left(b).transformValues(Numbered::new, Materialized.as("kept"), "seen").groupBy((k, v) -> new KeyValue<>(v, k)).count());
        });
        ALL.put("process", b -> {
            b.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("seen"), Serdes.String(), Serdes.String()));
            in(b).process(Counter::new, "seen").to("out");
        });
        TOPOLOGIES.put("processor_api", t -> t.addSource("Source", "in")
            .addProcessor("Process", Counter::new, "Source")
            .addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("seen"), Serdes.String(), Serdes.String()), "Process")
            .addSink("Sink", "out", "Process"));
    }

    static String text(byte[] data) {
        if (data == null) {
            return "-";
        }
        for (byte each : data) {
            if (each <= 32 || each > 126) {
                StringBuilder hex = new StringBuilder("0x");
                for (byte one : data) {
                    hex.append(String.format("%02x", one));
                }
                return hex.toString();
            }
        }
        return "'" + new String(data, StandardCharsets.US_ASCII) + "'";
    }

    /** Returns the error headers; values that depend on the language are omitted. */
    static String errors(TestRecord<byte[], byte[]> record) {
        StringBuilder found = new StringBuilder();
        for (Header each : record.headers()) {
            if (each.key().startsWith("__streams.errors.")) {
                String name = each.key().substring(17);
                found.append(" ").append(name);
                if (List.of("topic", "partition", "offset").contains(name)) {
                    found.append("=").append(each.value() == null ? "null" : new String(each.value(), StandardCharsets.UTF_8));
                }
            }
        }
        return found.toString();
    }

    static String headers(TestRecord<byte[], byte[]> record) {
        StringBuilder found = new StringBuilder();
        for (Header each : record.headers()) {
            if (!each.key().startsWith("__streams.errors.")) {
                String value = each.value() == null ? "-" : new String(each.value(), StandardCharsets.UTF_8);
                found.append(found.length() == 0 ? " {" : ",").append(each.key()).append("=").append(value);
            }
        }
        return found.length() == 0 ? "" : found.append("}").toString();
    }

    static Headers headers(String[] words) {
        RecordHeaders found = new RecordHeaders();
        for (String each : words.length > 5 ? words[5].split(",") : new String[0]) {
            String[] parts = each.split("=");
            found.add(parts[0], read(parts[1]) == null ? null : parts[1].getBytes(StandardCharsets.UTF_8));
        }
        return found;
    }

    static String read(String word) {
        return word.equals("-") ? null : word;
    }

    static void play(String line, List<String> events) {
        String[] told = line.split(" ");
        String name = told[0];
        given.clear();
        for (int each = 1; each < told.length; each++) {
            given.put(told[each].split("=")[0], told[each].split("=")[1]);
        }
        Properties config = new Properties();
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, "test");
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "nowhere:1");
        config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        config.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        config.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        config.put(StreamsConfig.STATE_DIR_CONFIG, System.getProperty("java.io.tmpdir") + "/scenarios");
        if (name.startsWith("cached_") || "1".equals(given.get("cache"))) {
            config.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 1 << 20);
        }
        if (name.startsWith("failing_")) {
            config.put(StreamsConfig.DESERIALIZATION_EXCEPTION_HANDLER_CLASS_CONFIG, LogAndContinueExceptionHandler.class);
            config.put(StreamsConfig.PROCESSING_EXCEPTION_HANDLER_CLASS_CONFIG, LogAndContinueProcessingExceptionHandler.class);
            config.put(StreamsConfig.PRODUCTION_EXCEPTION_HANDLER_CLASS_CONFIG, Continuing.class);
            config.put(StreamsConfig.ERRORS_DEAD_LETTER_QUEUE_TOPIC_NAME_CONFIG, "out-dead");
        }
        if (name.endsWith("_throttled") || "1".equals(given.get("throttled"))) {
            config.put("__emit.interval.ms.kstreams.outer.join.spurious.results.fix__", 1000L);
            config.put("__emit.interval.ms.kstreams.windowed.aggregation__", 1000L);
        }
        Topology topology;
        if (TOPOLOGIES.containsKey(name)) {
            topology = new Topology();
            TOPOLOGIES.get(name).accept(topology);
        } else {
            StreamsBuilder builder = new StreamsBuilder();
            ALL.get(name).accept(builder);
            topology = builder.build(config);
        }
        System.out.println("scenario " + line);
        System.out.print(topology.describe().toString().replaceAll("extractor class: [^)]*", "extractor class: function"));
        System.out.println("events");
        try (TopologyTestDriver driver = new TopologyTestDriver(topology, config, Instant.ofEpochMilli(0))) {
            for (String event : events) {
                System.out.println(event);
                String[] words = event.split(" ");
                if (words[0].equals("clock")) {
                    driver.advanceWallClockTime(ms(Long.parseLong(words[1])));
                } else {
                    TestInputTopic<String, String> topic = driver.createInputTopic(words[1], new StringSerializer(), new StringSerializer());
                    topic.pipeInput(new TestRecord<>(read(words[2]), read(words[4]), headers(words), Long.parseLong(words[3])));
                }
                for (String topic : new TreeSet<>(driver.producedTopicNames())) {
                    boolean internal = topic.matches(".*(SUBSCRIPTION|SUPPRESS|OUTERSHARED|shared-join|subscription|last-store|Buffer).*");
                    if (!topic.startsWith("out") && (internal || !topic.endsWith("-changelog"))) {
                        continue;
                    }
                    for (TestRecord<byte[], byte[]> record : driver.createOutputTopic(topic, new ByteArrayDeserializer(), new ByteArrayDeserializer()).readRecordsToList()) {
                        System.out.println("< " + topic + " " + text(record.key()) + " " + record.timestamp() + " " + text(record.value()) + headers(record) + errors(record));
                    }
                }
            }
        }
        System.out.println("end");
    }

    /** Continues without records that cannot be written. */
    public static class Continuing extends DefaultProductionExceptionHandler {
        @Override
        public Response handleSerializationError(
            ErrorHandlerContext context, ProducerRecord record, Exception exception, SerializationExceptionOrigin origin) {
            return Response.resume(super.handleSerializationError(context, record, exception, origin).deadLetterQueueRecords());
        }
    }

    static Serde<String> refusing(String refused) {
        return Serdes.serdeFrom((topic, value) -> {
            if (refused.equals(value)) {
                throw new SerializationException("refused");
            }
            return value == null ? null : value.getBytes(StandardCharsets.UTF_8);
        }, (topic, data) -> {
            String value = data == null ? null : new String(data, StandardCharsets.UTF_8);
            if (refused.equals(value)) {
                throw new SerializationException("refused");
            }
            return value;
        });
    }

    static String failing(String value) {
        if ("x".equals(value)) {
            throw new IllegalStateException("refused");
        }
        return value;
    }

    static void configured() {
        ALL.put("failing_deserialization", b -> b.stream("in", Consumed.with(Serdes.String(), refusing("x"))).to("out"));
        ALL.put("failing_processing", b -> {
            in(b).mapValues(v -> failing(v)).filter((k, v) -> !"b".equals(failing(v)))
                .groupByKey().count().toStream().mapValues(v -> v.toString()).to("out");
            in(b).selectKey((k, v) -> v).repartition(Repartitioned.as("again")).mapValues(v -> failing(v)).to("out-again");
        });
        ALL.put("failing_production", b -> in(b).mapValues(v -> v + "!").to("out", Produced.with(refusing("a"), refusing("x!"))));
        ALL.put("failing_table", b -> b.<String, String>table("in").filter((k, v) -> failing(v) != null).toStream().to("out"));
        ALL.put("cached_count", b -> out(in(b).flatMapValues(v -> v == null ? List.of() : List.of(v, v))
            .groupBy((k, v) -> v, Grouped.as("by-value")).count(Materialized.as("counts"))));
        ALL.put("cached_aggregate", b -> out(in(b).flatMap((k, v) -> k == null ? List.of() : List.of(
                new KeyValue<>(k, "" + v), new KeyValue<>("z", "" + v), new KeyValue<>(k, "2"), new KeyValue<>("c", "3")))
            .groupByKey(Grouped.as("group")).aggregate(EMPTY, APPEND, Materialized.as("sums"))));
        ALL.put("cached_regrouped", b -> out(in(b).flatMapValues(v -> v == null ? List.of() : List.of(v, v + v))
            .groupByKey().reduce(REDUCE, Materialized.as("reduced"))
            .groupBy((k, v) -> new KeyValue<>(v.substring(0, 1), v), Grouped.as("again"))
            .count(Materialized.as("lengths"))));
        ALL.put("cached_table", b -> b.<String, String>table("in", Materialized.as("table")).filter((k, v) -> !"b".equals(v)).toStream().to("out"));
        ALL.put("cached_windows", b -> out(in(b).flatMapValues(v -> v == null ? List.of() : List.of(v, v))
            .groupByKey().windowedBy(TimeWindows.ofSizeAndGrace(ms(10), ms(5)).advanceBy(ms(5)))
            .count(Materialized.as("counts"))));
        ALL.put("cached_sessions", b -> out(in(b).flatMapValues(v -> v == null ? List.of() : List.of(v, v))
            .groupByKey().windowedBy(SessionWindows.ofInactivityGapAndGrace(ms(5), ms(5)))
            .aggregate(EMPTY, APPEND, MERGE, Materialized.as("sums"))));
    }

    public static void main(String[] arguments) throws Exception {
        stateless();
        aggregates();
        windows();
        tables();
        joins();
        processors();
        configured();
        Shapes.register();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        if (arguments.length > 0 && arguments[0].equals("names")) {
            new TreeSet<>(ALL.keySet()).forEach(System.out::println);
            TOPOLOGIES.keySet().forEach(System.out::println);
            return;
        }
        String name = null;
        List<String> events = new ArrayList<>();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            if (line.startsWith("scenario ")) {
                if (name != null) {
                    play(name, events);
                }
                name = line.substring(9);
                events = new ArrayList<>();
            } else if (line.equals("play")) {
                try {
                    play(name, events);
                } catch (Exception error) {
                    System.out.println("failed " + error);
                    System.out.println("end");
                }
                System.out.flush();
                name = null;
            } else {
                events.add(line);
            }
        }
        if (name != null) {
            play(name, events);
        }
    }
}
