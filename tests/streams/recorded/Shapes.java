/*
 * Topologies with parameters, for compare.py: the counterpart of shapes.py.
 *
 * The parameters are words in the scenario's line: "scenario chain ops=fc3g source=table kept=5".
 */

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

public class Shapes {
    static final Serde<String> TEXT = Serdes.String();

    static long number(String name, long otherwise) {
        return Long.parseLong(Scenarios.given.getOrDefault(name, "" + otherwise));
    }

    static java.time.Duration time(String name, long otherwise) {
        return Scenarios.ms(number(name, otherwise));
    }

    static boolean is(String name, String value) {
        return Objects.equals(value, Scenarios.given.get(name));
    }

    static String first(String value) {
        return value == null || value.isEmpty() ? null : value.substring(0, 1);
    }

    /** Returns a value of limited length. */
    static String last(String value) {
        return value.length() > 12 ? value.substring(value.length() - 12) : value;
    }

    static <K> String append(K key, String value, String sum) {
        return "x".equals(value) ? null : last(sum + "." + value);
    }

    static String reduce(String one, String two) {
        return "x".equals(two) ? null : last(one + "." + two);
    }

    static String merge(Object key, String one, String two) {
        return last(one + two);
    }

    static String pair(String left, String right) {
        return "x".equals(right) ? null : last(left + "+" + right);
    }

    static TimeWindows timeWindows() {
        TimeWindows windows = TimeWindows.ofSizeAndGrace(time("size", 10), time("grace", 0));
        return windows.advanceBy(time("advance", number("size", 10)));
    }

    static UnlimitedWindows unlimitedWindows() {
        return UnlimitedWindows.of().startOn(java.time.Instant.ofEpochMilli(number("size", 10)));
    }

    static SlidingWindows slidingWindows() {
        return SlidingWindows.ofTimeDifferenceAndGrace(time("size", 10), time("grace", 0));
    }

    static SessionWindows sessionWindows() {
        return SessionWindows.ofInactivityGapAndGrace(time("size", 10), time("grace", 0));
    }

    static JoinWindows joinWindows() {
        return JoinWindows.ofTimeDifferenceAndGrace(time("size", 10), time("grace", 0))
            .before(time("before", number("size", 10))).after(time("after", number("size", 10)));
    }

    static EmitStrategy emitted() {
        return is("close", "1") ? EmitStrategy.onWindowClose() : EmitStrategy.onWindowUpdate();
    }

    static <K, V, S extends org.apache.kafka.streams.processor.StateStore> Materialized<K, V, S> kept(String name) {
        Materialized<K, V, S> kept = Materialized.as(name);
        return is("retention", null) ? kept : kept.withRetention(time("retention", 0));
    }

    static KTable<? extends Object, ? extends Object> windowed(TimeWindowedKStream<String, String> stream) {
        stream = stream.emitStrategy(emitted());
        if (is("fold", "count")) {
            return stream.count(kept("kept"));
        }
        return is("fold", "reduce") ? stream.reduce(Shapes::reduce, kept("kept"))
            : stream.aggregate(() -> "", Shapes::append, kept("kept"));
    }

    static KTable<? extends Object, ? extends Object> sessions(SessionWindowedKStream<String, String> stream) {
        stream = stream.emitStrategy(emitted());
        if (is("fold", "count")) {
            return stream.count(kept("kept"));
        }
        return is("fold", "reduce") ? stream.reduce(Shapes::reduce, kept("kept"))
            : stream.aggregate(() -> "", Shapes::append, Shapes::merge, kept("kept"));
    }

    /** Windowed aggregations, and optional steps after them. */
    @SuppressWarnings("unchecked")
    static void windows(StreamsBuilder b) {
        KGroupedStream<String, String> grouped = Scenarios.grouped(b);
        KTable<? extends Object, ? extends Object> table = is("kind", "session") ? sessions(grouped.windowedBy(sessionWindows()))
            : is("kind", "unlimited") ? windowed(grouped.windowedBy(unlimitedWindows()))
            : windowed(is("kind", "sliding") ? grouped.windowedBy(slidingWindows()) : grouped.windowedBy(timeWindows()));
        if (is("then", "suppress")) {
            Suppressed<?> last = Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded());
            table = ((KTable<Object, Object>) table).suppress((Suppressed<Object>) last);
        }
        KTable<Object, String> shown = ((KTable<Object, Object>) table).mapValues(v -> v.toString());
        if (is("then", "limit")) {
            Scenarios.out(((KTable<Object, Object>) table).suppress(Suppressed.untilTimeLimit(time("wait", 5), Suppressed.BufferConfig.maxRecords(2))));
        } else if (is("then", "filter")) {
            Scenarios.out(shown.filter((k, v) -> !v.contains("b") && !v.equals("2")));
        } else if (is("then", "group")) {
            Scenarios.out(shown.groupBy((k, v) -> new KeyValue<>(first(k.toString().substring(1)), v), Grouped.with(TEXT, TEXT))
                .aggregate(() -> "", (k, v, sum) -> last(sum + "+" + v), (k, v, sum) -> last(sum + "-" + v), Materialized.with(TEXT, TEXT)));
        } else {
            Scenarios.out(table);
        }
    }

    /** Joins of two tables with windowed keys. */
    @SuppressWarnings("unchecked")
    static void windowTables(StreamsBuilder b) {
        KTable<Object, String> left = (KTable<Object, String>) (KTable<?, ?>) windowTable(Scenarios.grouped(b), "left");
        KTable<Object, String> right = (KTable<Object, String>) (KTable<?, ?>) windowTable(
            b.<String, String>stream("other").groupByKey(Grouped.with(TEXT, TEXT)), "right");
        if (is("filter", "1")) {
            left = left.filter((k, v) -> !v.endsWith("b"));
        }
        if (is("then", "suppress")) {
            Suppressed<?> last = Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded());
            right = right.suppress((Suppressed<Object>) last);
        }
        Scenarios.out(is("how", "outer") ? left.outerJoin(right, Shapes::pair)
            : is("how", "left") ? left.leftJoin(right, Shapes::pair) : left.join(right, Shapes::pair));
    }

    static KTable<Windowed<String>, String> windowTable(KGroupedStream<String, String> group, String name) {
        return is("kind", "session") ? group.windowedBy(sessionWindows()).aggregate(() -> "", Shapes::append, Shapes::merge, kept(name))
            : is("kind", "sliding") ? group.windowedBy(slidingWindows()).aggregate(() -> "", Shapes::append, kept(name))
            : group.windowedBy(timeWindows()).aggregate(() -> "", Shapes::append, kept(name));
    }

    /** Two or three streams in one aggregation. */
    static void cogroup(StreamsBuilder b) {
        CogroupedKStream<String, String> both = Scenarios.grouped(b).<String>cogroup(Shapes::append)
            .cogroup(b.<String, String>stream("other").groupBy((k, v) -> k), (k, v, sum) -> "x".equals(v) ? null : last(sum + "/" + v));
        if (is("kind", "session")) {
            Scenarios.out(both.windowedBy(sessionWindows()).aggregate(() -> "", Shapes::merge, kept("kept")));
        } else if (is("kind", "sliding")) {
            Scenarios.out(both.windowedBy(slidingWindows()).aggregate(() -> "", kept("kept")));
        } else if (is("kind", "time")) {
            Scenarios.out(both.windowedBy(timeWindows()).aggregate(() -> "", kept("kept")));
        } else {
            Scenarios.out(both.aggregate(() -> "", kept("kept")));
        }
    }

    static void streamJoin(StreamsBuilder b) {
        KStream<String, String> left = Scenarios.in(b);
        KStream<String, String> right = b.stream("other");
        StreamJoined<String, String, String> joined = StreamJoined.with(TEXT, TEXT, TEXT);
        KStream<String, String> both = is("how", "outer") ? left.outerJoin(right, Scenarios::pair, joinWindows(), joined)
            : is("how", "left") ? left.leftJoin(right, Scenarios::pair, joinWindows(), joined)
            : left.join(right, Scenarios::pair, joinWindows(), joined);
        if (is("then", "count")) {
            Scenarios.out(both.groupByKey().windowedBy(timeWindows()).count());
        } else if (is("then", "join")) {
            both.outerJoin(b.stream("third"), Scenarios::pair, joinWindows(), joined).to("out");
        } else {
            both.to("out");
        }
    }

    static KTable<String, String> table(StreamsBuilder b, String topic) {
        if (is(topic, "versioned")) {
            return b.table(topic, Materialized.as(Stores.persistentVersionedKeyValueStore(topic + "-kept", time("history", 10))));
        }
        if (is(topic, "filtered")) {
            return b.<String, String>table(topic).filter((k, v) -> !"b".equals(v));
        }
        if (is(topic, "folded")) {
            return b.<String, String>stream(topic).groupByKey().aggregate(() -> "", Shapes::append);
        }
        if (is(topic, "mapped")) {
            return b.<String, String>table(topic).mapValues(v -> v + "'", Materialized.as(topic + "-kept"));
        }
        return b.table(topic);
    }

    static void streamTable(StreamsBuilder b) {
        Joined<String, String, String> joined = Joined.with(TEXT, TEXT, TEXT);
        if (!is("wait", null)) {
            joined = joined.withGracePeriod(time("wait", 0));
        }
        KTable<String, String> table = table(b, "other");
        KStream<String, String> both = is("how", "left") ? Scenarios.in(b).leftJoin(table, Scenarios::pair, joined)
            : Scenarios.in(b).join(table, Scenarios::pair, joined);
        both.to("out");
    }

    static void globalJoin(StreamsBuilder b) {
        GlobalKTable<String, String> table = b.globalTable("other", Materialized.as("all"));
        KeyValueMapper<String, String, String> key = is("key", "value") ? (k, v) -> "x".equals(v) ? null : v : (k, v) -> k;
        (is("how", "left") ? Scenarios.in(b).leftJoin(table, key, Scenarios::pair)
            : Scenarios.in(b).join(table, key, Scenarios::pair)).to("out");
    }

    static KTable<String, String> joined(KTable<String, String> left, KTable<String, String> right, Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept) {
        if (kept == null) {
            return is("how", "outer") ? left.outerJoin(right, Shapes::pair)
                : is("how", "left") ? left.leftJoin(right, Shapes::pair) : left.join(right, Shapes::pair);
        }
        return is("how", "outer") ? left.outerJoin(right, Shapes::pair, kept)
            : is("how", "left") ? left.leftJoin(right, Shapes::pair, kept) : left.join(right, Shapes::pair, kept);
    }

    static KTable<String, String> foreign(KTable<String, String> left, KTable<String, String> right, Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept) {
        if (kept == null) {
            return is("how", "left") ? left.leftJoin(right, Scenarios::fk, Shapes::pair) : left.join(right, Scenarios::fk, Shapes::pair);
        }
        return is("how", "left") ? left.leftJoin(right, Scenarios::fk, Shapes::pair, kept)
            : left.join(right, Scenarios::fk, Shapes::pair, kept);
    }

    static void tableJoin(StreamsBuilder b) {
        Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept = is("kept", "1") ? Materialized.as("kept")
            : is("kept", "versioned") ? Materialized.as(Stores.persistentVersionedKeyValueStore("kept", time("history", 10))) : null;
        KTable<String, String> left = table(b, "in");
        KTable<String, String> right = table(b, "other");
        KTable<String, String> both = is("by", "foreign") ? foreign(left, right, kept) : joined(left, right, kept);
        if (is("then", "filter")) {
            Scenarios.out(both.filter((k, v) -> !v.contains("c")));
        } else if (is("then", "group")) {
            Scenarios.out(both.groupBy((k, v) -> new KeyValue<>(first(v), v))
                .aggregate(() -> "", (k, v, sum) -> last(sum + "+" + v), (k, v, sum) -> last(sum + "-" + v)));
        } else if (is("then", "join")) {
            Scenarios.out(both.outerJoin(b.<String, String>table("third"), Shapes::pair));
        } else {
            Scenarios.out(both);
        }
    }

    static void suppressed(StreamsBuilder b) {
        KTable<String, String> table = table(b, "in");
        Suppressed.EagerBufferConfig room = is("records", null) ? Suppressed.BufferConfig.maxBytes(number("bytes", 1000000))
            : Suppressed.BufferConfig.maxRecords(number("records", 2));
        Suppressed<String> until = is("full", "1") ? Suppressed.untilTimeLimit(time("wait", 5), room.shutDownWhenFull())
            : Suppressed.untilTimeLimit(time("wait", 5), room);
        KTable<String, String> last = table.suppress(until);
        if (is("then", "group")) {
            Scenarios.out(last.groupBy((k, v) -> new KeyValue<>(first(v), v)).count());
        } else if (is("then", "join")) {
            Scenarios.out(last.leftJoin(b.<String, String>table("other"), Shapes::pair));
        } else {
            Scenarios.out(last);
        }
    }

    static void register() {
        Map<String, java.util.function.Consumer<StreamsBuilder>> all = new HashMap<>();
        all.put("windows", Shapes::windows);
        all.put("window_tables", Shapes::windowTables);
        all.put("cogroups", Shapes::cogroup);
        all.put("stream_joins", Shapes::streamJoin);
        all.put("stream_tables", Shapes::streamTable);
        all.put("global_joins", Shapes::globalJoin);
        all.put("table_joins", Shapes::tableJoin);
        all.put("suppresses", Shapes::suppressed);
        all.put("chain", Chain::build);
        all.put("commands", Commands::build);
        Scenarios.ALL.putAll(all);
    }
}
