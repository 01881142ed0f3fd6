/* Produces or consumes records of one size with librdkafka, and prints one JSON object.
 *
 * client produce BOOTSTRAP TOPIC PARTITIONS COUNT SIZE VALUES CODEC LINGER_MS [NAME=VALUE...]
 * client consume BOOTSTRAP TOPIC PARTITIONS COUNT SIZE PASSES [NAME=VALUE...]
 *
 * NAME=VALUE is a setting of librdkafka, such as security.protocol=SSL.
 * VALUES is a file of values of SIZE bytes, which are sent in turn, to each partition alike. COUNT is the
 * number of records of the whole topic. bench/clients.py compiles this program against the librdkafka of
 * the package confluent-kafka, which comes without a header: the declarations below are those of its
 * public ABI that are used here.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

typedef struct rd_kafka rd_kafka_t;
typedef struct rd_kafka_conf rd_kafka_conf_t;
typedef struct rd_kafka_topic rd_kafka_topic_t;
typedef struct rd_kafka_queue rd_kafka_queue_t;
typedef struct {
    int err;
    rd_kafka_topic_t *topic;
    int32_t partition;
    void *payload;
    size_t len;
    void *key;
    size_t key_len;
    int64_t offset;
    void *internal;
} rd_kafka_message_t;
typedef struct {
    char *topic;
    int32_t partition;
    int64_t offset;
} rd_kafka_topic_partition_t; /* its first members */
typedef struct rd_kafka_topic_partition_list rd_kafka_topic_partition_list_t;

enum { PRODUCER = 0, CONSUMER = 1, COPY = 2, BATCH = 10000, QUEUE_FULL = -184, PARTITION_EOF = -191 };
enum { WAIT_MS = 60000 };

rd_kafka_conf_t *rd_kafka_conf_new(void);
int rd_kafka_conf_set(rd_kafka_conf_t *, const char *, const char *, char *, size_t);
void rd_kafka_conf_set_dr_msg_cb(rd_kafka_conf_t *,
                                 void (*)(rd_kafka_t *, const rd_kafka_message_t *, void *));
rd_kafka_t *rd_kafka_new(int, rd_kafka_conf_t *, char *, size_t);
rd_kafka_topic_t *rd_kafka_topic_new(rd_kafka_t *, const char *, void *);
void rd_kafka_topic_destroy(rd_kafka_topic_t *);
int rd_kafka_produce(rd_kafka_topic_t *, int32_t, int, void *, size_t, const void *, size_t, void *);
int rd_kafka_last_error(void);
int rd_kafka_poll(rd_kafka_t *, int);
int rd_kafka_flush(rd_kafka_t *, int);
int rd_kafka_poll_set_consumer(rd_kafka_t *);
rd_kafka_topic_partition_list_t *rd_kafka_topic_partition_list_new(int);
rd_kafka_topic_partition_t *rd_kafka_topic_partition_list_add(rd_kafka_topic_partition_list_t *,
                                                              const char *, int32_t);
void rd_kafka_topic_partition_list_destroy(rd_kafka_topic_partition_list_t *);
int rd_kafka_assign(rd_kafka_t *, const rd_kafka_topic_partition_list_t *);
rd_kafka_queue_t *rd_kafka_queue_get_consumer(rd_kafka_t *);
void rd_kafka_queue_destroy(rd_kafka_queue_t *);
ssize_t rd_kafka_consume_batch_queue(rd_kafka_queue_t *, int, rd_kafka_message_t **, size_t);
void rd_kafka_message_destroy(rd_kafka_message_t *);
int rd_kafka_consumer_close(rd_kafka_t *);
void rd_kafka_destroy(rd_kafka_t *);

static long failed;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static double now_s(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char why[256];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why)) fail(name, why);
}

static void delivered(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client, (void)opaque;
    failed += message->err != 0;
}

static void print(double records, double bytes, double seconds) {
    printf("{\"records_s\": %.1f, \"mb_s\": %.3f}\n", records / seconds, bytes / seconds / 1e6);
}

static char *read_values(const char *path, long size, long *count) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) fail(path, "cannot be read");
    *count = ftell(file) / size;
    rewind(file);
    char *values = malloc((size_t)(*count * size));
    if (!values || fread(values, (size_t)size, (size_t)*count, file) != (size_t)*count)
        fail(path, "cannot be read");
    fclose(file);
    return values;
}

static void produce(rd_kafka_conf_t *conf, char **words) {
    char why[256];
    long partitions = atol(words[3]), count = atol(words[4]), size = atol(words[5]), values_count;
    char *values = read_values(words[6], size, &values_count);
    set(conf, "compression.codec", words[7]);
    set(conf, "linger.ms", words[8]);
    set(conf, "acks", "1");
    set(conf, "batch.size", "1000000");
    set(conf, "queue.buffering.max.messages", "1000000");
    set(conf, "queue.buffering.max.kbytes", "512000");
    rd_kafka_conf_set_dr_msg_cb(conf, delivered);
    rd_kafka_t *client = rd_kafka_new(PRODUCER, conf, why, sizeof why);
    if (!client) fail("producer", why);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, words[2], NULL);
    /* The first record waits for the metadata; it is not timed. */
    rd_kafka_produce(topic, 0, COPY, values, (size_t)size, NULL, 0, NULL);
    if (rd_kafka_flush(client, WAIT_MS)) fail(words[2], "the first record was not acknowledged");
    double begin = now_s();
    for (long sent = 1; sent < count; sent++) {
        char *value = values + sent % values_count * size;
        while (rd_kafka_produce(topic, (int32_t)(sent % partitions), COPY, value, (size_t)size, NULL, 0, NULL)) {
            if (rd_kafka_last_error() != QUEUE_FULL) fail(words[2], "cannot produce");
            rd_kafka_poll(client, 10);
        }
        if (!(sent & 1023)) rd_kafka_poll(client, 0);
    }
    if (rd_kafka_flush(client, 2 * WAIT_MS) || failed) fail(words[2], "not all acknowledged");
    print((double)count, (double)count * (double)size, now_s() - begin);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
}

static void consume(rd_kafka_conf_t *conf, char **words) {
    static rd_kafka_message_t *batch[BATCH];
    char why[256];
    long partitions = atol(words[3]), count = atol(words[4]), passes = atol(words[6]);
    double bytes = 0, seconds = 0, records = 0;
    set(conf, "group.id", "bench");
    set(conf, "enable.auto.commit", "false");
    set(conf, "fetch.max.bytes", "67108864");
    set(conf, "max.partition.fetch.bytes", "8388608");
    set(conf, "queued.min.messages", "1000000");
    set(conf, "queued.max.messages.kbytes", "512000");
    rd_kafka_t *client = rd_kafka_new(CONSUMER, conf, why, sizeof why);
    if (!client) fail("consumer", why);
    rd_kafka_poll_set_consumer(client);
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(client);
    for (long pass = 0; pass < passes; pass++) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)partitions);
        for (long number = 0; number < partitions; number++)
            rd_kafka_topic_partition_list_add(list, words[2], (int32_t)number)->offset = 0;
        if (rd_kafka_assign(client, list)) fail(words[2], "cannot be assigned");
        rd_kafka_topic_partition_list_destroy(list);
        double begin = 0;
        for (long left = count; left > 0;) {
            /* It waits until the batch is full. The first record starts the clock. */
            size_t size = !begin ? 1 : left < BATCH ? (size_t)left : BATCH;
            ssize_t got = rd_kafka_consume_batch_queue(queue, WAIT_MS, batch, size);
            if (got <= 0) fail(words[2], "records did not arrive");
            if (!begin) begin = now_s();
            for (ssize_t number = 0; number < got; number++) {
                if (batch[number]->err && batch[number]->err != PARTITION_EOF)
                    fail(words[2], "a fetch failed");
                if (!batch[number]->err) left--, records++, bytes += (double)batch[number]->len;
                rd_kafka_message_destroy(batch[number]);
            }
        }
        seconds += now_s() - begin;
        rd_kafka_assign(client, NULL);
    }
    print(records, bytes, seconds);
    rd_kafka_queue_destroy(queue);
    rd_kafka_consumer_close(client);
    rd_kafka_destroy(client);
}

int main(int argc, char **argv) {
    int is_produce = argc >= 10 && !strcmp(argv[1], "produce");
    if (!is_produce && !(argc >= 8 && !strcmp(argv[1], "consume")))
        return fprintf(stderr, "client produce|consume BOOTSTRAP TOPIC PARTITIONS COUNT SIZE ...\n"), 2;
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", argv[2]);
    for (char **word = argv + (is_produce ? 10 : 8); *word; word++) {
        char *value = strchr(*word, '=');
        if (!value) fail(*word, "is not NAME=VALUE");
        *value = 0;
        set(conf, *word, value + 1);
    }
    if (is_produce) produce(conf, argv + 1);
    else consume(conf, argv + 1);
    return 0;
}
