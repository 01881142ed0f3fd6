/* A processor whose records are commands to a store, for compare.py: its twin in Python is commands.py. */

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.Cancellable;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.*;

class Commands extends ContextualProcessor<String, String, String, String> {
    Object store;
    final List<Cancellable> schedules = new ArrayList<>();

    static void build(StreamsBuilder b) {
        b.addStateStore(builder());
        Scenarios.in(b).process(Commands::new, "store").to("out");
    }

    static StoreBuilder<? extends StateStore> builder() {
        long retention = Shapes.number("retention", 20);
        long size = Shapes.number("size", 10);
        StoreBuilder<? extends StateStore> found;
        switch (Scenarios.given.get("kind")) {
            case "key_value": found = Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("store"), Shapes.TEXT, Shapes.TEXT); break;
            case "timestamped": found = Stores.timestampedKeyValueStoreBuilder(Stores.persistentTimestampedKeyValueStore("store"), Shapes.TEXT, Shapes.TEXT); break;
            case "window": found = Stores.windowStoreBuilder(Stores.persistentWindowStore("store", Scenarios.ms(retention), Scenarios.ms(size), false), Shapes.TEXT, Shapes.TEXT); break;
            case "session": found = Stores.sessionStoreBuilder(Stores.persistentSessionStore("store", Scenarios.ms(retention)), Shapes.TEXT, Shapes.TEXT); break;
            default: return Stores.versionedKeyValueStoreBuilder(Stores.persistentVersionedKeyValueStore("store", Scenarios.ms(retention)), Shapes.TEXT, Shapes.TEXT);
        }
        return Shapes.is("cache", "1") ? found.withCachingEnabled() : found;
    }

    @Override
    public void init(ProcessorContext<String, String> context) {
        super.init(context);
        store = context.getStateStore("store");
    }

    @Override
    public void process(Record<String, String> record) {
        if (record.key() == null || record.value() == null) {
            return;
        }
        String[] words = record.value().split(",");
        Object found = words[0].equals("tick") || words[0].equals("stop") ? clock(words, record) : ask(record.key(), words);
        context().forward(record.withValue(shown(found)));
    }

    Object clock(String[] words, Record<String, String> record) {
        if (words[0].equals("stop")) {
            if (!schedules.isEmpty()) {
                schedules.remove(0).cancel();
            }
            return null;
        }
        PunctuationType type = words[1].equals("stream") ? PunctuationType.STREAM_TIME : PunctuationType.WALL_CLOCK_TIME;
        schedules.add(context().schedule(Scenarios.ms(number(words, 2)), type, now -> context().forward(
            new Record<>(record.key(), "tick" + words[2] + words[1] + context().currentStreamTimeMs() + "/" + context().currentSystemTimeMs(), now))));
        return null;
    }

    @SuppressWarnings("unchecked")
    Object ask(String key, String[] words) {
        if (store instanceof TimestampedKeyValueStore) {
            return timestamped((TimestampedKeyValueStore<String, String>) store, key, words);
        }
        if (store instanceof KeyValueStore) {
            return plain((KeyValueStore<String, String>) store, key, words);
        }
        if (store instanceof WindowStore) {
            return window((WindowStore<String, String>) store, key, words);
        }
        if (store instanceof SessionStore) {
            return session((SessionStore<String, String>) store, key, words);
        }
        return versioned((VersionedKeyValueStore<String, String>) store, key, words);
    }

    static long number(String[] words, int at) {
        return Long.parseLong(words[at]);
    }

    static String word(String[] words, int at) {
        return words[at].equals("-") ? null : words[at];
    }

    Object nothing(Runnable action) {
        action.run();
        return null;
    }

    Object timestamped(TimestampedKeyValueStore<String, String> kept, String key, String[] words) {
        switch (words[0]) {
            case "put": return nothing(() -> kept.put(key, ValueAndTimestamp.make(word(words, 1), number(words, 2))));
            case "del": return kept.delete(key);
            case "get": return kept.get(key);
            case "range": return kept.range(word(words, 1), word(words, 2));
            case "rrange": return kept.reverseRange(word(words, 1), word(words, 2));
            case "prefix": return kept.prefixScan(words[1], Shapes.TEXT.serializer());
            case "all": return kept.all();
            default: return kept.reverseAll();
        }
    }

    Object plain(KeyValueStore<String, String> kept, String key, String[] words) {
        switch (words[0]) {
            case "put": return nothing(() -> kept.put(key, word(words, 1)));
            case "pia": return kept.putIfAbsent(key, word(words, 1));
            case "del": return kept.delete(key);
            case "get": return kept.get(key);
            case "range": return kept.range(word(words, 1), word(words, 2));
            case "rrange": return kept.reverseRange(word(words, 1), word(words, 2));
            case "prefix": return kept.prefixScan(words[1], Shapes.TEXT.serializer());
            case "all": return kept.all();
            default: return kept.reverseAll();
        }
    }

    Object window(WindowStore<String, String> kept, String key, String[] words) {
        switch (words[0]) {
            case "put": return nothing(() -> kept.put(key, word(words, 1), number(words, 2)));
            case "get": return kept.fetch(key, number(words, 1));
            case "fetch": return kept.fetch(key, number(words, 1), number(words, 2));
            case "bfetch": return kept.backwardFetch(key, number(words, 1), number(words, 2));
            case "kfetch": return kept.fetch(word(words, 1), word(words, 2), number(words, 3), number(words, 4));
            case "bkfetch": return kept.backwardFetch(word(words, 1), word(words, 2), number(words, 3), number(words, 4));
            case "fall": return kept.fetchAll(number(words, 1), number(words, 2));
            case "bfall": return kept.backwardFetchAll(number(words, 1), number(words, 2));
            case "ball": return kept.backwardAll();
            default: return kept.all();
        }
    }

    Object session(SessionStore<String, String> kept, String key, String[] words) {
        switch (words[0]) {
            case "put": return nothing(() -> kept.put(new Windowed<>(key, new SessionWindow(number(words, 2), number(words, 3))), word(words, 1)));
            case "rm": return nothing(() -> kept.remove(new Windowed<>(key, new SessionWindow(number(words, 1), number(words, 2)))));
            case "get": return kept.fetchSession(key, number(words, 1), number(words, 2));
            case "find": return kept.findSessions(key, number(words, 1), number(words, 2));
            case "bfind": return kept.backwardFindSessions(key, number(words, 1), number(words, 2));
            case "kfind": return kept.findSessions(word(words, 1), word(words, 2), number(words, 3), number(words, 4));
            case "bkfind": return kept.backwardFindSessions(word(words, 1), word(words, 2), number(words, 3), number(words, 4));
            case "kfetch": return kept.fetch(word(words, 1), word(words, 2));
            case "bkfetch": return kept.backwardFetch(word(words, 1), word(words, 2));
            case "bfetch": return kept.backwardFetch(key);
            default: return kept.fetch(key);
        }
    }

    Object versioned(VersionedKeyValueStore<String, String> kept, String key, String[] words) {
        switch (words[0]) {
            case "put": return kept.put(key, word(words, 1), number(words, 2));
            case "del": return kept.delete(key, number(words, 1));
            case "get": return kept.get(key);
            default: return kept.get(key, number(words, 1));
        }
    }

    /** Formats the result of a store like commands.py. */
    static String shown(Object found) {
        if (found instanceof Iterator) {
            StringBuilder all = new StringBuilder("[");
            ((Iterator<?>) found).forEachRemaining(each -> {
                org.apache.kafka.streams.KeyValue<?, ?> entry = (org.apache.kafka.streams.KeyValue<?, ?>) each;
                all.append(entry.key).append("=").append(shown(entry.value)).append(";");
            });
            return all.append("]").toString();
        }
        if (found instanceof ValueAndTimestamp) {
            ValueAndTimestamp<?> entry = (ValueAndTimestamp<?>) found;
            return entry.value() + "@" + entry.timestamp();
        }
        if (found instanceof VersionedRecord) {
            VersionedRecord<?> entry = (VersionedRecord<?>) found;
            return entry.value() + "@" + entry.timestamp();
        }
        return "" + found;
    }
}
