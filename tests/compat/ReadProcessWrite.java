import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/**
 * Reads `in`, writes `out`, each record in a transaction with its offset; one step at a time.
 *
 * <p>Arguments, output and input are those of read_process_write.py.
 */
public final class ReadProcessWrite {
    private static final Set<TopicPartition> PLACES =
            Set.of(new TopicPartition("in", 0), new TopicPartition("in", 1));
    private final BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    private final String bootstrap;
    private final long count;
    private final String pause;
    private final KafkaConsumer<String, String> consumer;
    private KafkaProducer<String, String> producer;

    private ReadProcessWrite(String bootstrap, long count, String pause) {
        this.bootstrap = bootstrap;
        this.count = count;
        this.pause = pause;
        Properties settings = settings("deserializer", "common.serialization.StringDeserializer");
        settings.put("group.id", "process");
        settings.put("group.instance.id", "only");
        settings.put("isolation.level", "read_committed");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("max.poll.records", "4");
        consumer = new KafkaConsumer<>(settings);
        consumer.subscribe(List.of("in"));
        producer = newProducer();
    }

    private Properties settings(String kind, String codec) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("reconnect.backoff.max.ms", "200");
        settings.put("key." + kind, "org.apache.kafka." + codec);
        settings.put("value." + kind, "org.apache.kafka." + codec);
        return settings;
    }

    private KafkaProducer<String, String> newProducer() {
        Properties settings = settings("serializer", "common.serialization.StringSerializer");
        settings.put("transactional.id", "process");
        settings.put("linger.ms", "0");
        KafkaProducer<String, String> found = new KafkaProducer<>(settings);
        found.initTransactions();
        return found;
    }

    private void step(String name) throws Exception {
        System.out.println(name);
        System.out.flush();
        if (pause.equals(name) || pause.equals("every")) {
            input.readLine();
        }
    }

    private Map<TopicPartition, Long> committed() {
        Map<TopicPartition, Long> found = new HashMap<>();
        consumer.committed(PLACES)
                .forEach((place, at) -> found.put(place, at == null ? 0 : at.offset()));
        return found;
    }

    private void run() throws Exception {
        while (committed().values().stream().mapToLong(Long::longValue).sum() < count) {
            ConsumerRecords<String, String> records = consumer.poll(Duration.ofSeconds(1));
            if (records.isEmpty()) {
                continue;
            }
            try {
                process(records);
            } catch (KafkaException error) {
                step("failed " + error);
                producer.close(Duration.ZERO);
                producer = newProducer();
                Map<TopicPartition, Long> places = committed();
                while (!consumer.assignment().containsAll(PLACES)) {
                    consumer.poll(Duration.ZERO);
                }
                places.forEach(consumer::seek);
            }
        }
        consumer.close();
        producer.close();
        step("done");
    }

    private void process(ConsumerRecords<String, String> records) throws Exception {
        producer.beginTransaction();
        step("begun");
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (ConsumerRecord<String, String> found : records) {
            sent.add(producer.send(new ProducerRecord<>("out", "did " + found.value())));
            offsets.put(
                    new TopicPartition(found.topic(), found.partition()),
                    new OffsetAndMetadata(found.offset() + 1));
        }
        producer.flush();
        for (Future<RecordMetadata> written : sent) {
            // A flush also ends if the records were not written.
            try {
                written.get();
            } catch (ExecutionException error) {
                throw new KafkaException(error.getCause());
            }
        }
        step("produced");
        producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
        step("offsets");
        step("committing");
        producer.commitTransaction();
        step("committed");
    }

    public static void main(String[] arguments) throws Exception {
        new ReadProcessWrite(arguments[0], Long.parseLong(arguments[1]), arguments[2]).run();
    }
}
