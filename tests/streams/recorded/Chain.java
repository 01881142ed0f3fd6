/* A topology that is made of letters, one an operator, for compare.py: its twin in Python is chain.py. */

import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

class Chain {
    final StreamsBuilder builder;
    KStream<String, String> stream;
    KTable<String, String> table;
    int step;

    Chain(StreamsBuilder builder) {
        this.builder = builder;
    }

    static void build(StreamsBuilder b) {
        Chain chain = new Chain(b);
        String source = Scenarios.given.getOrDefault("source", "stream");
        if (source.equals("stream")) {
            chain.stream = b.stream("in");
        } else if (source.equals("extracted")) {
            chain.stream = b.stream("in", Consumed.<String, String>as("source").withTimestampExtractor(
                (record, before) -> "y".equals(record.value()) ? -1 : "c".equals(record.value()) ? before : record.timestamp() / 2));
        } else {
            chain.table = Shapes.table(b, "in");
        }
        for (char each : Scenarios.given.get("ops").toCharArray()) {
            chain.step++;
            if ("fnmvklqzdPMBbGJLOcraWSDTi".indexOf(each) >= 0) {
                chain.ofStream(each);
            } else {
                chain.ofTable(each);
            }
        }
        chain.asStream().to("out");
    }

    KStream<String, String> asStream() {
        if (table != null) {
            stream = table.toStream();
            table = null;
        }
        return stream;
    }

    KTable<String, String> asTable() {
        if (table == null) {
            table = stream.toTable();
            stream = null;
        }
        return table;
    }

    <V> Materialized<String, V, KeyValueStore<Bytes, byte[]>> kept() {
        return (Shapes.number("kept", 0) >> step & 1) == 1 ? Materialized.as("store" + step) : null;
    }

    static class Delayed extends ContextualProcessor<String, String, String, String> {
        @Override
        public void process(Record<String, String> record) {
            context().forward(record.withTimestamp(Math.max(0, record.timestamp() - 7)));
            record.headers().add("delayed", new byte[] {49});
            context().forward(record.withValue(record.value() + "d"));
        }
    }

    /** Forwards each record, and more records on both clocks. */
    static class Ticking extends ContextualProcessor<String, String, String, String> {
        int seen;

        @Override
        public void init(org.apache.kafka.streams.processor.api.ProcessorContext<String, String> context) {
            super.init(context);
            context.schedule(Shapes.time("wait", 5), org.apache.kafka.streams.processor.PunctuationType.STREAM_TIME,
                now -> context.forward(new Record<>("a", "s" + seen, Math.max(0, now - 1))));
            context.schedule(Scenarios.ms(100), org.apache.kafka.streams.processor.PunctuationType.WALL_CLOCK_TIME,
                now -> context.forward(new Record<>("b", seen % 2 == 0 ? null : "w", now)));
        }

        @Override
        public void process(Record<String, String> record) {
            seen++;
            context().forward(record);
        }
    }

    <K> void windowed(KTable<Windowed<String>, K> made) {
        stream = made.toStream().map((k, v) -> new KeyValue<>(k.key(), v == null ? null : k.window().start() + ":" + v));
    }

    void ofStream(char letter) {
        KStream<String, String> in = asStream();
        switch (letter) {
            case 'f': stream = in.filter((k, v) -> !"b".equals(v)); break;
            case 'n': stream = in.filterNot((k, v) -> "c".equals(k)); break;
            case 'm': stream = in.map((k, v) -> new KeyValue<>(v, k)); break;
            case 'v': stream = in.mapValues(v -> v == null ? null : v + "!"); break;
            case 'k': stream = in.selectKey((k, v) -> Shapes.first(v)); break;
            case 'l': stream = in.flatMapValues(v -> v == null ? List.of() : List.of(v, v + v)); break;
            case 'q': stream = in.repartition(); break;
            case 'z': stream = in.processValues(Scenarios.Twice::new); break;
            case 'd': stream = in.process(Delayed::new); break;
            case 'P': stream = in.process(Ticking::new); break;
            case 'M': stream = in.merge(builder.stream("merged" + step)); break;
            case 'B': stream = in.join(builder.<String, String>table("table" + step), Scenarios::pair); break;
            case 'b': stream = in.leftJoin(builder.<String, String>table("table" + step), Scenarios::pair); break;
            case 'G': stream = in.leftJoin(builder.<String, String>globalTable("global" + step), (k, v) -> v, Scenarios::pair); break;
            case 'J': stream = in.join(builder.stream("joined" + step), Scenarios::pair, Shapes.joinWindows()); break;
            case 'L': stream = in.leftJoin(builder.stream("joined" + step), Scenarios::pair, Shapes.joinWindows()); break;
            case 'O': stream = in.outerJoin(builder.stream("joined" + step), Scenarios::pair, Shapes.joinWindows()); break;
            case 'i':
                in.split().branch((k, v) -> "a".equals(k), Branched.withConsumer(s -> s.to("out-a" + step)));
                stream = in.peek((k, v) -> { });
                break;
            case 'W': windowed(in.groupByKey().windowedBy(Shapes.timeWindows()).emitStrategy(Shapes.emitted()).count()); break;
            case 'S': windowed(in.groupByKey().windowedBy(Shapes.sessionWindows()).aggregate(() -> "", Shapes::append, Shapes::merge)); break;
            case 'D': windowed(in.groupByKey().windowedBy(Shapes.slidingWindows()).emitStrategy(Shapes.emitted()).reduce(Shapes::reduce)); break;
            default: fold(letter, in);
        }
    }

    void fold(char letter, KStream<String, String> in) {
        stream = null;
        Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept = kept();
        Materialized<String, Long, KeyValueStore<Bytes, byte[]>> counted = kept();
        switch (letter) {
            case 'c': table = (counted == null ? in.groupByKey().count() : in.groupByKey().count(counted)).mapValues(v -> "n" + v); break;
            case 'r': table = kept == null ? in.groupByKey().reduce(Shapes::reduce) : in.groupByKey().reduce(Shapes::reduce, kept); break;
            case 'a':
                KGroupedStream<String, String> group = in.groupBy((k, v) -> Shapes.first(v));
                table = kept == null ? group.aggregate(() -> "", Shapes::append) : group.aggregate(() -> "", Shapes::append, kept);
                break;
            case 'T': table = kept == null ? in.toTable() : in.toTable(kept); break;
            default: throw new IllegalArgumentException("" + letter);
        }
    }

    static String filling(String value) {
        return value == null ? "none" : value + "*";
    }

    void ofTable(char letter) {
        KTable<String, String> in = asTable();
        Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept = kept();
        switch (letter) {
            case '1': table = kept == null ? in.filter((k, v) -> !v.contains("b")) : in.filter((k, v) -> !v.contains("b"), kept); break;
            case '2': table = kept == null ? in.filterNot((k, v) -> v.equals("c")) : in.filterNot((k, v) -> v.equals("c"), kept); break;
            case '3': table = kept == null ? in.mapValues(v -> Shapes.last(v + "'")) : in.mapValues(v -> Shapes.last(v + "'"), kept); break;
            case '5': transform(in, kept); break;
            case 'A': table = kept == null ? in.join(other(), Shapes::pair) : in.join(other(), Shapes::pair, kept); break;
            case 'H': table = kept == null ? in.leftJoin(other(), Shapes::pair) : in.leftJoin(other(), Shapes::pair, kept); break;
            case 'U': table = kept == null ? in.outerJoin(other(), Shapes::pair) : in.outerJoin(other(), Shapes::pair, kept); break;
            case 'X': table = kept == null ? in.join(other(), Scenarios::fk, Shapes::pair) : in.join(other(), Scenarios::fk, Shapes::pair, kept); break;
            case 'Y': table = kept == null ? in.leftJoin(other(), Scenarios::fk, Shapes::pair) : in.leftJoin(other(), Scenarios::fk, Shapes::pair, kept); break;
            case 's': table = in.suppress(Suppressed.untilTimeLimit(Shapes.time("wait", 5), Suppressed.BufferConfig.unbounded())); break;
            case 't': table = in.suppress(Suppressed.untilTimeLimit(Shapes.time("wait", 5), Suppressed.BufferConfig.maxRecords(2))); break;
            case 'o': table = in.toStream().toTable(); break;
            default: group(letter, in, kept);
        }
    }

    KTable<String, String> other() {
        return builder.table("table" + step);
    }

    void transform(KTable<String, String> in, Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept) {
        ValueTransformerWithKeySupplier<String, String, String> made = () -> new ValueTransformerWithKey<>() {
            @Override
            public void init(org.apache.kafka.streams.processor.ProcessorContext context) {
            }

            @Override
            public String transform(String key, String value) {
                return filling(value);
            }

            @Override
            public void close() {
            }
        };
        table = kept == null ? in.transformValues(made) : in.transformValues(made, kept);
    }

    void group(char letter, KTable<String, String> in, Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept) {
        KGroupedTable<String, String> group = in.groupBy((k, v) -> new KeyValue<>(Shapes.first(v), v.equals("a") ? null : v));
        Aggregator<String, String, String> plus = (k, v, sum) -> "x".equals(v) ? null : Shapes.last(sum + "+" + v);
        Aggregator<String, String, String> minus = (k, v, sum) -> v.endsWith("c") ? null : Shapes.last(sum + "-" + v);
        Reducer<String> more = (one, two) -> "x".equals(two) ? null : Shapes.last(one + "+" + two);
        Reducer<String> less = (one, two) -> two.endsWith("c") ? null : Shapes.last(one + "-" + two);
        switch (letter) {
            case 'g': table = group.count().mapValues(v -> "n" + v); break;
            case 'R': table = kept == null ? group.reduce(more, less) : group.reduce(more, less, kept); break;
            case 'C': table = kept == null ? group.aggregate(() -> "", plus, minus) : group.aggregate(() -> "", plus, minus, kept); break;
            default: throw new IllegalArgumentException("" + letter);
        }
    }
}
