// The contender `kafka streams`: runs topologies one after the other, as its standard input says. A line has topology, application, source, table
// and sink, separated by tabs; an empty line ends the topology. Every update is emitted, as by the others: there is no cache.

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

public final class StreamsPeer {
    private static final Serde<String> TEXT = Serdes.String();
    private static final Serde<Long> LONG = Serdes.Long();

    private static final class Numbered implements Processor<String, String, String, String> {
        private ProcessorContext<String, String> context;
        private KeyValueStore<String, Long> numbers;

        @Override
        public void init(ProcessorContext<String, String> given) {
            context = given;
            numbers = given.getStateStore("numbers");
        }

        @Override
        public void process(Record<String, String> record) {
            Long known = numbers.get(record.key());
            long number = (known == null ? 0 : known) + 1;
            numbers.put(record.key(), number);
            context.forward(record.withValue(Long.toString(number)));
        }
    }

    private static ProcessorSupplier<String, String, String, String> numbered() {
        return new ProcessorSupplier<>() {
            @Override
            public Processor<String, String, String, String> get() {
                return new Numbered();
            }

            @Override
            public Set<StoreBuilder<?>> stores() {
                return Set.of(Stores.keyValueStoreBuilder(
                    Stores.persistentKeyValueStore("numbers"), TEXT, LONG));
            }
        };
    }

    private static Topology build(String name, String source, String table, String sink) {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> values = builder.stream(source, Consumed.with(TEXT, TEXT));
        Produced<String, String> texts = Produced.with(TEXT, TEXT);
        Produced<String, Long> counts = Produced.with(TEXT, LONG);
        Grouped<String, String> grouped = Grouped.with(TEXT, TEXT);
        switch (name) {
            case "count":
                values.groupByKey(grouped).count().toStream().to(sink, counts);
                break;
            case "windowed_count":
                values.groupByKey(grouped)
                    .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(10), Duration.ofSeconds(5)))
                    .count().toStream()
                    .map((key, value) -> KeyValue.pair(key.key() + "@" + key.window().start(), value))
                    .to(sink, counts);
                break;
            case "table_join":
                values.join(builder.table(table, Consumed.with(TEXT, TEXT)),
                    (value, other) -> value + other.substring(0, 10)).to(sink, texts);
                break;
            case "processor":
                values.process(numbered()).to(sink, texts);
                break;
            default:
                values.filter((key, value) -> value.charAt(0) != 'b')
                    .mapValues(value -> value.toUpperCase()).to(sink, texts);
        }
        return builder.build();
    }

    private static KafkaStreams start(String bootstrap, String threads, String[] words, Path folder) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, words[1]);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, threads);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, "0");
        settings.put(StreamsConfig.STATE_DIR_CONFIG, folder.toString());
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        KafkaStreams found = new KafkaStreams(build(words[0], words[2], words[3], words[4]), settings);
        found.start();
        return found;
    }

    public static void main(String[] arguments) throws IOException {
        System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "warn");
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            Path folder = Files.createTempDirectory(Path.of(arguments[2]), "state");
            KafkaStreams running = start(arguments[0], arguments[1], line.split("\t"), folder);
            orders.readLine();
            running.close(Duration.ofSeconds(20));
            running.cleanUp();
            System.out.println("stopped");
            System.out.flush();
        }
    }
}
