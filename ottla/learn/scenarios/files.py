"""Lessons about what is in the files and in the memory of a broker, and options of new topics."""

import platform
import threading
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from ottla.client.admin import topics
from ottla.learn import observation
from ottla.learn.events import Text
from ottla.learn.lesson import Subject
from ottla.learn.stage import Stage
from ottla.wire.records.batch import HEADER_SIZE, crc32c, parse_header
from ottla.wire.records.records import Record, encode_batch

SUBJECT = Subject("storage")
# The checksum covers everything from the attributes to the end of the batch.
_CHECKSUM_START = 21
_MEGABYTE = 1 << 20


@SUBJECT.lesson(
    "batch-format",
    question=Text(
        "In which format are records sent and stored, and how is damage noticed?",
        "消息以什么格式传输和存储？如何发现损坏？",
    ),
    explanation=Text(
        "As record batches, format {magic}: one header of {header_bytes} bytes for all {records} records of the batch, with "
        "base offset, leader epoch, producer id and sequence. The checksum in the header is CRC-32C: {crc} in the file, "
        "{crc32c} computed as CRC-32C, {crc32} computed as CRC-32, which formats 0 and 1 used for each message. "
        "The same batch with one bit changed was refused with {damaged}, and the batch of "
        "an older format with {old}; the log still ends at {end}. Apache Kafka 4 does not write formats 0 and 1 either.",
        "以消息批次（record batch）的形式，格式版本 {magic}：一个 {header_bytes} 字节的头部供批次内全部 {records} 条消息共用，包含基准 offset、leader epoch、"
        "producer id 和序号。头部的校验和是 CRC-32C：文件中为 {crc}，按 CRC-32C 计算为 {crc32c}，按 CRC-32 计算为 {crc32}"
        "（格式 0 和 1 对每条消息使用 CRC-32）。改动一个比特后，同一批次以 {damaged} 被拒绝；旧格式的批次以 {old} 被拒绝；日志末端仍是 {end}。"
        "Apache Kafka 4 也不再写入格式 0 和 1。",
    ),
)
def batch_format(stage: Stage) -> None:
    """The checksum on the disk is CRC-32C; a damaged batch and an old format are refused."""
    topic = stage.topic()
    batch = encode_batch([Record(None, value.encode()) for value in ("a", "b", "c")], timestamp=0)
    sent = stage.send_batch(topic, batch)
    stage.show(topic)
    folder = observation.folder(stage.cluster, 1, topic)
    data = next(folder.glob("*.log")).read_bytes()
    header = parse_header(data)
    stage.table(
        Text("Header of the batch", "批次头部"),
        Text("field,value", "字段,值"),
        list(header._asdict().items()),
    )
    covered = data[_CHECKSUM_START : header.size_bytes]
    damaged = bytearray(batch)
    damaged[-1] ^= 1
    stage.say(
        "A batch of {records} records: {sent}. Format {magic}, checksum {crc}.",
        "一个包含 {records} 条消息的批次：{sent}。格式 {magic}，校验和 {crc}。",
        records=header.records_count,
        sent=sent.name,
        magic=header.magic,
        header_bytes=HEADER_SIZE,
        crc=f"{header.crc:08x}",
        crc32c=f"{crc32c(covered):08x}",
        crc32=f"{zlib.crc32(covered):08x}",
    )
    stage.say(
        "With one bit changed: {damaged}. As a message of format 1: {old}. The log ends at {end}.",
        "改动一个比特：{damaged}。格式 1 的消息：{old}。日志末端为 {end}。",
        damaged=stage.send_batch(topic, damaged).name,
        old=stage.send_batch(topic, _old_message(b"d")).name,
        end=observation.log_end_offset(stage.cluster, 1, topic),
    )


def _old_message(value: bytes) -> bytes:
    """Return a message set of one message in format 1, with its CRC-32."""
    content = b"\x01\x00" + bytes(8) + b"\xff\xff\xff\xff" + len(value).to_bytes(4, "big") + value
    message = zlib.crc32(content).to_bytes(4, "big") + content
    return bytes(8) + len(message).to_bytes(4, "big") + message


@SUBJECT.lesson(
    "memory",
    question=Text(
        "How much memory does a broker need, and must the JVM's -XX:PermSize be set?",
        "broker 需要多少内存？需要设置 JVM 的 -XX:PermSize 吗？",
    ),
    explanation=Text(
        "No setting is needed. PermSize was an option of the JVM until Java 7; Java 8 has no permanent generation. "
        "This broker has no JVM at all: it is a thread of this process ({runtime}), with {options} options that begin "
        "with -XX. A broker keeps records in files, not in its heap: after {written} MB were written, the files "
        "had grown by {stored} MB and Python's heap by {grown} MB. The operating system's page cache holds "
        "recent records, so leave the rest of the memory to it (on the JVM, too).",
        "什么都不用设置。PermSize 是 Java 7 及以前 JVM 的选项，Java 8 已没有永久代。这里的 broker 根本没有 JVM：它是本进程（{runtime}）中的一个线程，"
        "以 -XX 开头的选项有 {options} 个。broker 把消息放在文件里而不是堆里：写入 {written} MB 后，文件增加了 {stored} MB，"
        "Python 堆增加了 {grown} MB。最近的消息由操作系统的页缓存保存，所以应把其余内存留给它（JVM 上也一样）。",
    ),
)
def memory(stage: Stage) -> None:
    """The heap of the process does not grow with the log."""
    topic = stage.topic()
    count = 24
    producer = stage.producer(acks=1, message_max_bytes=2 * _MEGABYTE)
    value = b"x" * (_MEGABYTE - 1024)
    producer.send(topic, value, partition=0).result(20)
    folder = observation.folder(stage.cluster, 1, topic)

    def stored() -> int:
        return sum(path.stat().st_size for path in folder.glob("*.log"))

    with _measured_memory():
        bytes_before, (memory_before, _) = stored(), tracemalloc.get_traced_memory()
        for _ in range(count):
            producer.send(topic, value, partition=0).result(20)
        memory_after, _ = tracemalloc.get_traced_memory()
    options = stage.broker_options()
    threads = [thread.name for thread in threading.enumerate()]
    stage.table(
        Text("Growth in MB", "增长（MB）"),
        Text("files,heap", "文件,堆"),
        [(_megabytes(stored() - bytes_before), _megabytes(memory_after - memory_before))],
    )
    stage.say(
        "{written} MB were written. Files: {stored} MB more; heap: {grown} MB more.",
        "写入了 {written} MB。文件增加 {stored} MB；堆增加 {grown} MB。",
        written=_megabytes(count * len(value)),
        stored=_megabytes(stored() - bytes_before),
        grown=_megabytes(memory_after - memory_before),
        runtime=f"{platform.python_implementation()} {platform.python_version()}",
        options=sum(name.startswith("-XX") for name in options),
        is_thread="ottla-broker" in threads,
    )


@contextmanager
def _measured_memory() -> Iterator[None]:
    was_tracing = tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        yield
    finally:
        if not was_tracing:
            tracemalloc.stop()


def _megabytes(size: int) -> float:
    return round(size / _MEGABYTE, 1)


@SUBJECT.lesson(
    "num-partitions",
    question=Text(
        "num.partitions is raised. Do existing topics get more partitions?",
        "调大 num.partitions 后，已有 topic 的分区会增加吗？",
    ),
    explanation=Text(
        "No: it is the default for new topics, and only if the request names no number. With num.partitions={first_option} "
        "the topic 'early' got {early_before} partitions. After a restart with num.partitions={second_option} it "
        "still had {early_after}, a new topic without a number got {late}, and one that asked for one partition got "
        "{explicit}. Existing topics grow with kafka-topics --alter (lesson grow-partitions).",
        "不会：它只是新 topic 的默认值，而且只在请求没有指定分区数时生效。num.partitions={first_option} 时，topic 'early' 有 {early_before} 个分区。"
        "以 num.partitions={second_option} 重启后它仍有 {early_after} 个，未指定分区数的新 topic 有 {late} 个，指定 1 个分区的有 {explicit} 个。"
        "已有 topic 用 kafka-topics --alter 增加分区（课程 grow-partitions）。",
    ),
)
def num_partitions(stage: Stage) -> None:
    """A changed default applies to new topics only."""
    with _option(stage, "num.partitions", "2"):
        first = stage.broker_option("num.partitions")
        early = stage.topic("early", partitions=topics.BROKER_DEFAULT)
        stage.show(early, *range(_count(stage, early)))
        stage.say(
            "num.partitions={first_option}: a new topic has {early_before} partitions. Now {second_option}.",
            "num.partitions={first_option}：新 topic 有 {early_before} 个分区。现在改为 {second_option}。",
            first_option=first,
            early_before=_count(stage, early),
            second_option=4,
        )
    with _option(stage, "num.partitions", "4"):
        late = stage.topic("late", partitions=topics.BROKER_DEFAULT)
        explicit = stage.topic("explicit", partitions=1)
        counts = {topic: _count(stage, topic) for topic in (early, late, explicit)}
        stage.table(
            Text("Partitions", "分区"),
            Text("topic,partitions", "topic,分区数"),
            list(counts.items()),
        )
        stage.say(
            "After a restart with num.partitions={second_option}: {counts}.",
            "以 num.partitions={second_option} 重启后：{counts}。",
            counts=counts,
            second_option=stage.broker_option("num.partitions"),
            early_after=counts[early],
            late=counts[late],
            explicit=counts[explicit],
        )


@contextmanager
def _option(stage: Stage, name: str, value: str) -> Iterator[None]:
    """Restart the broker with an option, and afterwards without it."""
    options = stage.cluster.options
    options[name] = value
    try:
        stage.cluster.restart(1)
        yield
    finally:
        del options[name]
        stage.cluster.restart(1)


def _count(stage: Stage, topic: str) -> int:
    with stage.cluster.admin() as brokers:
        return len(topics.describe_topic(brokers, topic).partitions)
