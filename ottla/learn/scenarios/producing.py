"""Lessons about producers: the path of a record, order, partitions, retries, batches."""

import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from ottla.client.errors import ClientError
from ottla.client.records import ProducerRecord, RecordMetadata
from ottla.learn.events import Text
from ottla.learn.lesson import Subject
from ottla.learn.observation import RequestCounter, batches, log_end_offset
from ottla.learn.stage import Stage
from ottla.wire.records.murmur2 import murmur2

SUBJECT = Subject("producing")
_INTERCEPTOR = Text("interceptor", "拦截器")
_ACKNOWLEDGEMENT = Text("acknowledgement", "确认")


class _Witness:
    """Notes each step of a record, with the thread that runs it."""

    def __init__(self) -> None:
        self.steps: list[Text] = []
        self.threads: dict[Text, str] = {}

    def note(self, step: Text) -> None:
        """Note a step."""
        self.steps.append(step)
        self.threads[step] = threading.current_thread().name

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Note the interceptor."""
        self.note(_INTERCEPTOR)
        return record

    def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None) -> None:
        """Note the acknowledgement."""
        self.note(_ACKNOWLEDGEMENT)

    def encode(self, value: str) -> bytes:
        """Note the serializer, and encode the value."""
        self.note(Text("serializer", "序列化器"))
        return value.encode()

    def partition(self, key: bytes | None, partitions: Sequence[int]) -> int:
        """Note the partitioner, and choose the last partition."""
        self.note(Text("partitioner", "分区器"))
        return partitions[-1]


class _Forgetful:
    """The interceptor of many tutorials: it returns nothing."""

    def on_send(self, record: ProducerRecord) -> Any:
        """Forget to return the record."""
        return None


@SUBJECT.lesson(
    "send-path",
    question=Text(
        "In which order do interceptor, serializer and partitioner run, and in how many threads?",
        "拦截器、序列化器、分区器的执行顺序是什么？生产者有几个线程？",
    ),
    explanation=Text(
        "The order was: {steps}. The steps before sending run in the caller's thread ({send_thread}); "
        "a batch waits in a queue, another thread sends it, and acknowledgements arrived in "
        "thread {ack_thread}: callbacks must be fast. The names of the threads are Ottla's, whose queue and sender are librdkafka's. In Java's client "
        "the queue is the RecordAccumulator, and one thread, kafka-producer-network-thread, sends batches and "
        "calls back. An interceptor that returns None from on_send is refused by name here ({none_error}); Java's "
        "client throws a NullPointerException.",
        "顺序为：{steps}。发送前的步骤在调用者线程（{send_thread}）中执行；批次在队列中等待，由另一个线程发送，"
        "确认在线程 {ack_thread} 中到达，因此回调必须快。这些线程名属于 Ottla，其队列和发送线程属于 librdkafka。Java 客户端的队列是 RecordAccumulator，"
        "由一个线程 kafka-producer-network-thread 发送批次并执行回调。这里 on_send 返回 None 的拦截器会报错并指出它的名字（{none_error}）；Java 客户端抛出 NullPointerException。",
    ),
)
def send_path(stage: Stage) -> None:
    """Interceptor, serializer, partitioner, and then the acknowledgement in another thread."""
    topic = stage.topic(partitions=3)
    witness = _Witness()
    producer = stage.producer(
        interceptors=[witness],
        value_serializer=witness.encode,
        partitioner=witness.partition,
    )
    future = producer.send(topic, "one")
    # Not `result()`: a caller that waits for it serves the acknowledgement itself.
    stage.until(lambda: _ACKNOWLEDGEMENT in witness.steps, "the record is acknowledged")
    metadata = future.result(20)
    producer.close()
    stage.table(
        Text("The path of one record", "一条消息的路径"),
        Text("step,thread", "步骤,线程"),
        [(step, witness.threads[step]) for step in witness.steps],
    )
    stage.say(
        "The partitioner chose partition {chosen}; the record has offset {offset}.",
        "分区器选择了分区 {chosen}；消息的 offset 为 {offset}。",
        chosen=metadata.partition,
        offset=metadata.offset,
        steps=witness.steps,
        send_thread=witness.threads[_INTERCEPTOR],
        ack_thread=witness.threads[_ACKNOWLEDGEMENT],
        is_other_thread=witness.threads[_INTERCEPTOR] != witness.threads[_ACKNOWLEDGEMENT],
    )
    try:
        stage.producer(interceptors=[_Forgetful()]).send(topic, "two")
        error = "none"
    except ClientError as refused:
        error = str(refused)
    stage.say(
        "An interceptor that returns None: {none_error}.",
        "返回 None 的拦截器：{none_error}。",
        none_error=error,
    )


@SUBJECT.lesson(
    "order",
    question=Text(
        "Does Kafka keep the order of records?",
        "Kafka 能保证消息的顺序吗？",
    ),
    explanation=Text(
        "Within a partition, yes: each key's records were read as they were sent ({by_key}), because "
        "a key has the same partition ({places}) as long as no partitions are added. Across partitions there is no order, "
        "as the two lists above show. A global order needs one partition. With idempotence, the default, up "
        "to five requests in flight keep the order; max.in.flight.requests.per.connection=1 is needed "
        "only without it (lesson in-flight).",
        "分区内保证：每个 key 的消息按发送顺序读出（{by_key}），因为只要不增加分区，同一个 key 总在同一分区（{places}）。"
        "跨分区没有顺序，如上面两个列表所示。全局有序需要只有一个分区。开启幂等（默认）时，5 个以内的在途请求保持顺序；"
        "只有不幂等时才需要 max.in.flight.requests.per.connection=1（见课程 in-flight）。",
    ),
)
def order(stage: Stage) -> None:
    """Records of a key stay in order; records of different partitions do not."""
    topic = stage.topic(partitions=3)
    producer = stage.producer()
    keys = ["anna", "eva", "gina"]
    sent = [f"{key}-{number}" for number in range(1, 4) for key in keys]
    futures = [producer.send(topic, value, key=value.partition("-")[0]) for value in sent]
    partitions = {
        value.partition("-")[0]: future.result(20).partition
        for value, future in zip(sent, futures, strict=True)
    }
    stage.show(topic, 0, 1, 2)
    records = stage.read(topic, 3)
    # Partition by partition, as a consumer that fetches one after the other delivers them.
    records.sort(key=lambda record: (record.partition, record.offset))
    by_key = defaultdict(list)
    for record in records:
        by_key[record.key.decode()].append(record.value.decode())
    stage.say(
        "Sent: {sent}. Read, partition by partition: {read}.",
        "发送：{sent}。按分区读取：{read}。",
        sent=sent,
        read=[record.value.decode() for record in records],
        places=partitions,
        by_key=dict(sorted(by_key.items())),
    )


@SUBJECT.lesson(
    "partitioner",
    question=Text(
        "Who chooses the partition of a record: the broker, the leader or the producer? How?",
        "消息的分区由谁决定：broker、leader 还是生产者？如何决定？",
    ),
    explanation=Text(
        "The producer. With a key: toPositive(murmur2(key)) % partitions, computed here as {computed} "
        "and found as {found}, in Java's clients and in Ottla's; librdkafka computes CRC-32 unless its option "
        "partitioner is murmur2 or murmur2_random. Without a key: sticky, one partition "
        "for a batch ({sticky} partition for one batch of {count}), which makes larger batches than "
        "round robin. Since Apache Kafka 3.3 (KIP-794) Java's client changes the partition after batch.size bytes, "
        "however long a batch waits, and gives slow brokers fewer records (partitioner.adaptive.partitioning.enable); before, slow brokers got more. "
        "The load of brokers is no criterion for a key: a frequent key loads one leader. An explicit partition overrides all.",
        "由生产者决定。有 key 时：toPositive(murmur2(key)) % 分区数，这里计算得 {computed}，实际为 {found}；Java 和 Ottla 的客户端都这样计算，"
        "librdkafka 默认用 CRC-32，除非设置 partitioner=murmur2 或 murmur2_random。"
        "没有 key 时：粘性分区，一个批次一个分区（{count} 条的一个批次在 {sticky} 个分区），批次比轮询更大。自 Apache Kafka 3.3（KIP-794）起，Java 客户端在写满 batch.size 字节后更换分区，与批次等待多久无关，并且给慢的 broker 更少的消息（partitioner.adaptive.partitioning.enable）；以前慢的 broker 反而更多。"
        "broker 的负载不影响 key 的分区：热点 key 会压在一个 leader 上。显式指定分区优先。",
    ),
)
def partitioner(stage: Stage) -> None:
    """Keys are placed by murmur2; records without a key stay together for a batch."""
    topic = stage.topic(partitions=3)
    producer = stage.producer()
    keys = ["anna", "eva", "gina", "dora"]
    actual = {key: producer.send(topic, "v", key=key).result(20).partition for key in keys}
    computed = {key: (murmur2(key.encode()) & 0x7FFFFFFF) % 3 for key in keys}
    patient = stage.producer(linger_ms=100)
    # The first record fetches the metadata; only then can a partition be chosen for a batch.
    patient.send(topic, "first", key="anna").result(20)
    futures = [patient.send(topic, f"no key {number}") for number in range(20)]
    patient.flush(20)
    used = {future.result(20).partition for future in futures}
    stage.show(topic, 0, 1, 2)
    stage.table(
        Text("Partitions of keys", "key 的分区"),
        Text("key,computed,found", "key,计算值,实际值"),
        [(key, computed[key], actual[key]) for key in keys],
    )
    stage.say(
        "{count} records without a key, in one batch: {sticky} partition.",
        "{count} 条没有 key 的消息，一个批次：{sticky} 个分区。",
        count=len(futures),
        sticky=len(used),
        computed=computed,
        found=actual,
    )


@SUBJECT.lesson(
    "retries",
    brokers=3,
    question=Text(
        "Does Kafka duplicate records? What does enable.idempotence change?",
        "Kafka 会产生重复消息吗？enable.idempotence 有什么作用？",
    ),
    explanation=Text(
        "A response that comes too late makes the producer retry. Without idempotence the leader "
        "appended the record again for each retry: {plain}. With it (the default since 3.0), each batch "
        "has a producer id and a sequence number, the leader recognised the repetition, and the record "
        "is there once: {idempotent}. A restarted producer has a new producer id: only transactions "
        "cover that.",
        "响应来得太晚会使生产者重试。不幂等时 leader 每次重试都再追加一次：{plain}。幂等时（3.0 起默认）每个批次带有 producer id 和序号，"
        "leader 识别出重复，消息只有一条：{idempotent}。生产者重启后 producer id 会变：只有事务能覆盖这种情况。",
    ),
)
def retries(stage: Stage) -> None:
    """A retry duplicates a record without idempotence, and does not with it."""
    plain = _retry(stage, "plain", enable_idempotence=False)
    idempotent = _retry(stage, "idempotent", enable_idempotence=True)
    stage.say(
        "Without idempotence: {plain}. With idempotence: {idempotent}.",
        "不幂等：{plain}。幂等：{idempotent}。",
        plain=plain,
        idempotent=idempotent,
    )


def _retry(stage: Stage, noun: str, **settings: Any) -> list[str]:
    cluster = stage.cluster
    topic = stage.topic(noun, replicas=3)
    leader = cluster.leader(topic)
    requests = RequestCounter()
    counted = {"stats_cb": requests, "statistics_interval_ms": 20}
    impatient = {"request_timeout_ms": 150, "retry_backoff_ms": 10}
    producer = stage.producer(acks="all", **impatient, **counted, **settings)
    producer.send(topic, "first").result(20)
    followers = [broker for broker in cluster.brokers if broker != leader]
    stage.say(
        "Topic {topic}: the followers are cut off, so acks=all gets no response in time.",
        "topic {topic}：follower 被断开，acks=all 无法及时得到响应。",
        topic=topic,
    )
    for follower in followers:
        cluster.isolate(follower)
    future = producer.send(topic, "order-1")
    # One request for the first record, one for this one, and the retry.
    stage.until(lambda: requests["Produce"] >= 3, "the producer has retried")
    stage.show(topic)
    for follower in followers:
        cluster.heal(follower)
    future.result(20)
    producer.close()
    return stage.values(topic)


@SUBJECT.lesson(
    "batches",
    question=Text(
        "Why is Kafka fast?",
        "Kafka 为什么快？",
    ),
    explanation=Text(
        "Records travel and are stored in batches: {single} records that were sent one by one took {batches_one} "
        "batches, {count} records with linger.ms=50 took {batches_many}. The broker appends a batch as it came, in one "
        "sequential write, and sends it from the page cache without copying it (sendfile; not with TLS). Compression "
        "works on a batch: {bytes_plain} bytes became {bytes_compressed} with zstd. This producer sent "
        "{rate} records/s just now.",
        "消息按批次传输和存储：逐条发送的 {single} 条消息用了 {batches_one} 个批次，linger.ms=50 时 {count} 条消息用了 {batches_many} 个。"
        "broker 原样顺序追加批次，并用 sendfile 从页缓存零拷贝发送（使用 TLS 时除外）。压缩以批次为单位：{bytes_plain} 字节用 zstd 压缩为 {bytes_compressed}。"
        "刚才生产者的速率为每秒 {rate} 条。",
    ),
)
def why_fast(stage: Stage) -> None:
    """Lingering and compression reduce batches and bytes."""
    count = 500
    single = stage.topic("single")
    producer = stage.producer()
    for number in range(20):
        producer.send(single, f"reading {number}", partition=0).result(20)
    sizes = {}
    begin = time.perf_counter()
    for noun, codec in (("lingering", "none"), ("compressed", "zstd")):
        topic = stage.topic(noun)
        with stage.producer(linger_ms=50, compression_type=codec) as patient:
            for number in range(count):
                patient.send(topic, f"reading {number} of the sensor in room 12", partition=0)
        sizes[noun] = batches(stage.cluster, 1, topic)
    rate = 2 * count / (time.perf_counter() - begin)
    alone = batches(stage.cluster, 1, single)
    rows = {
        Text("one by one", "逐条"): alone,
        Text("lingering", "linger.ms=50"): sizes["lingering"],
        Text("compressed", "压缩"): sizes["compressed"],
    }
    stage.table(
        Text("Batches on disk", "磁盘上的批次"),
        Text("how,records,batches,bytes", "方式,消息数,批次数,字节数"),
        [
            (
                name,
                sum(row[0] for row in topic_batches),
                len(topic_batches),
                sum(row[1] for row in topic_batches),
            )
            for name, topic_batches in rows.items()
        ],
    )
    stage.say(
        "{count} records: {batches_many} batch(es), {bytes_plain} bytes; compressed {bytes_compressed}.",
        "{count} 条消息：{batches_many} 个批次，{bytes_plain} 字节；压缩后 {bytes_compressed} 字节。",
        count=count,
        single=20,
        batches_one=len(alone),
        batches_many=len(sizes["lingering"]),
        bytes_plain=sum(row[1] for row in sizes["lingering"]),
        bytes_compressed=sum(row[1] for row in sizes["compressed"]),
        rate=round(rate),
        end=log_end_offset(stage.cluster, 1, single),
    )
