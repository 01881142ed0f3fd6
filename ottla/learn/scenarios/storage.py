"""Lessons about storage: the files of a partition, and partitions that are added later."""

from ottla.base.errors import ApiError
from ottla.client.admin import topics
from ottla.learn import observation
from ottla.learn.events import Text
from ottla.learn.lesson import Subject
from ottla.learn.stage import Stage

SUBJECT = Subject("storage")


@SUBJECT.lesson(
    "log-directory",
    question=Text(
        "What is in a log directory, and how does the broker find an offset in it?",
        "日志目录里有什么？broker 如何按 offset 查找消息？",
    ),
    explanation=Text(
        "A folder <topic>-<partition> ({folder}) has segments, named by the offset of their first record in "
        "20 digits: {bases}. Offset {wanted} is in the segment with the largest base offset that is not "
        "larger: {segment}. Its sparse .index gives a position to start from, and .timeindex does so for "
        "times; the broker scans batches from there. This broker keeps the indexes of the newest segment in memory "
        "until the segment is full. A .snapshot file has the sequence numbers of producers. The file "
        "leader-epoch-checkpoint, written with the first flush here, has the first offset of each leader epoch. "
        "Retention deletes whole segments, the oldest first.",
        "目录 <topic>-<partition>（{folder}）中有若干段文件，以其第一条消息的 offset 命名（20 位）：{bases}。"
        "offset {wanted} 位于基准 offset 不大于它的最大段：{segment}。稀疏索引 .index 给出起始位置，.timeindex 用于按时间查找，"
        "broker 从那里开始扫描批次。这个 broker 在最新的段写满之前把它的索引放在内存中。.snapshot 保存各生产者的序号；"
        "leader-epoch-checkpoint（这里在首次刷盘时写入）保存每个 leader epoch 的起始 offset。过期删除以整个段为单位，从最旧的段开始。",
    ),
)
def log_directory(stage: Stage) -> None:
    """Segments are named by their first offset."""
    topic = stage.topic(segment_bytes=str(1 << 20))
    stage.send(topic, *(f"record {number} is large " + "." * 400_000 for number in range(8)))
    folder = observation.folder(stage.cluster, 1, topic)
    files = sorted(path for path in folder.iterdir() if path.is_file())
    stage.table(
        Text("Files", "文件"),
        Text("file,bytes", "文件名,字节数"),
        [(path.name, path.stat().st_size) for path in files],
    )
    bases = sorted(int(path.stem) for path in files if path.suffix == ".log")
    searched_offset = 5
    base = max(number for number in bases if number <= searched_offset)
    stage.show(topic)
    stage.say(
        "{segments} segments; offset {wanted} is in {segment}.",
        "{segments} 个段；offset {wanted} 位于 {segment}。",
        segments=len(bases),
        bases=bases,
        folder=folder.name,
        wanted=searched_offset,
        segment=f"{base:020d}.log",
    )


@SUBJECT.lesson(
    "grow-partitions",
    question=Text(
        "Can the number of partitions grow? Can it shrink? What happens to the keys?",
        "分区数可以增加吗？可以减少吗？key 会怎样？",
    ),
    explanation=Text(
        "It can grow; num.partitions applies only to new topics (lesson num-partitions). It cannot shrink: "
        "{error}, because the records of removed partitions would be lost or out of order. After growth "
        "murmur2(key) % partitions has another result for the keys {moved}: their new records are in "
        "another partition than the old ones ({before} before, {after} after), so their order is lost.",
        "可以增加；num.partitions 只对新 topic 生效（见课程 num-partitions）。不能减少：{error}，否则被删分区的消息会丢失或乱序。"
        "增加后 murmur2(key) % 分区数 对这些 key 的结果改变：{moved}，它们的新消息与旧消息不在同一分区（之前 {before}，之后 {after}），顺序因此丢失。",
    ),
)
def grow_partitions(stage: Stage) -> None:
    """Partitions can be added, keys move, and a topic cannot shrink."""
    topic = stage.topic(partitions=2)
    keys = ["anna", "eva", "gina", "hugo"]
    before = _places(stage, topic, keys)
    stage.show(topic, 0, 1)
    with stage.cluster.admin() as brokers:
        topics.create_partitions(brokers, topic, 4)
        stage.cluster.leader(topic, 3)
        try:
            topics.create_partitions(brokers, topic, 2)
            error = "none"
        except ApiError as refused:
            error = refused.code.name
    after = _places(stage, topic, keys)
    stage.show(topic, 0, 1, 2, 3)
    stage.say(
        "From 2 to 4 partitions: keys that moved: {moved}. From 4 to 2: {error}.",
        "从 2 个分区到 4 个：移动的 key：{moved}。从 4 到 2：{error}。",
        before=before,
        after=after,
        moved=[key for key in keys if before[key] != after[key]],
        error=error,
    )


def _places(stage: Stage, topic: str, keys: list[str]) -> dict[str, int]:
    producer = stage.producer()
    return {key: producer.send(topic, f"{key}'s", key=key).result(20).partition for key in keys}
