"""Lessons about what a producer is promised: values of acks, duplicates with acks=1, requests in
flight.
"""

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.admin.configs import Resource, ResourceType, alter_config
from ottla.learn.events import Text
from ottla.learn.lesson import Subject
from ottla.learn.observation import RequestCounter, log_end_offset
from ottla.learn.stage import Stage
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.records.records import Record, encode_batch

SUBJECT = Subject("producing")
_MIN_ISR = "min.insync.replicas"
_ACCEPTED = Text("accepted", "已接受")


@SUBJECT.lesson(
    "acks-2",
    question=Text(
        "Which values may acks have? Can a producer ask for two acknowledgements?",
        "acks 可以取哪些值？生产者能要求两个副本确认吗？",
    ),
    explanation=Text(
        "Only 0, 1 and all (-1). The broker's responses were {answers}: acks=2 is refused, and nothing is "
        "appended (the log ends at {end}). The producer does not even start: {client_error}. How many replicas must have a record is an option of the topic, "
        "min.insync.replicas, together with acks=all. Version 0.8 accepted other numbers.",
        "只有 0、1 和 all（-1）。broker 的回答：{answers}：acks=2 被拒绝，什么都没有写入（日志末端为 {end}）。生产者也无法启动：{client_error}。"
        "需要多少个副本拥有消息，由 topic 的选项 min.insync.replicas 与 acks=all 共同决定。0.8 版本曾接受其他数字。",
    ),
)
def acks_2(stage: Stage) -> None:
    """A request with acks=2 is refused; 0, 1 and all are accepted."""
    topic = stage.topic()
    answers: dict[int, Text | str] = {}
    for acks in (0, 1, -1):
        stage.send(topic, f"acks={acks}", acks=acks)
        answers[acks] = _ACCEPTED
    stage.until(lambda: log_end_offset(stage.cluster, 1, topic) == 3, "all three are appended")
    answers[2] = stage.send_batch(topic, _batch("acks=2"), acks=2).name
    stage.table(Text("Answers", "响应"), Text("acks,answer", "acks,响应"), list(answers.items()))
    stage.show(topic)
    try:
        stage.send(topic, "acks=2", acks=2)
        error = "none"
    except OttlaError as refused:
        error = str(refused)
    stage.say(
        "The broker's responses: {answers}. The log ends at {end}. A producer with acks=2: {client_error}.",
        "broker 的回答：{answers}。日志末端为 {end}。acks=2 的生产者：{client_error}。",
        answers=answers,
        end=log_end_offset(stage.cluster, 1, topic),
        client_error=error,
    )


@SUBJECT.lesson(
    "acks-1-duplicates",
    question=Text(
        "acks=1 is called “at most once”. Can a record be stored twice with it?",
        "有人说 acks=1 是“至多一次”。它会让一条消息存储两次吗？",
    ),
    explanation=Text(
        "Yes. The leader stopped for longer than the producer waits (request.timeout.ms in Java's client), and then "
        "stored the record. The producer cannot know that, and sent it again: {stored}, {requests} requests for one "
        "record. acks=1 may lose records (lesson acks-1) and duplicate them. Only acks=0 comes close to at "
        "most once: without a response there is no retry. Idempotence removes the duplicates (lesson retries), "
        "and needs acks=all.",
        "会。leader 停顿的时间超过了生产者的等待时间（Java 客户端的 request.timeout.ms），之后才存储消息。生产者无法知道，于是再次发送：{stored}。"
        "一条消息用了 {requests} 次请求。acks=1 既可能丢（课程 acks-1），也可能重复。只有 acks=0 接近至多一次：没有响应就没有重试。"
        "幂等可以消除重复（课程 retries），它要求 acks=all。",
    ),
)
def acks_1_duplicates(stage: Stage) -> None:
    """A response that comes too late makes the producer send a stored record again."""
    topic = stage.topic()
    requests = RequestCounter()
    producer = stage.producer(
        acks=1,
        socket_timeout_ms=200,
        retry_backoff_ms=10,
        stats_cb=requests,
        statistics_interval_ms=20,
    )
    producer.send(topic, "first", partition=0).result(20)
    stage.until(lambda: requests["Produce"] >= 1, "the first request is counted")
    before, timeouts = requests["Produce"], requests.timeouts
    stage.show(topic)
    stage.say(
        "The leader stops for a moment, as in a long garbage collection. The producer sends a record.",
        "leader 停顿片刻，如同一次长时间的垃圾回收。生产者发送一条消息。",
    )
    stage.cluster.pause(1)
    future = producer.send(topic, "pay 10 €", partition=0)
    stage.until(
        lambda: requests["Produce"] > before and requests.timeouts > timeouts,
        "the producer has stopped waiting",
    )
    stage.cluster.resume(1)
    offset = future.result(20).offset
    stage.until(lambda: requests["Produce"] >= before + 2, "the retry is counted")
    producer.close()
    stage.show(topic)
    stage.say(
        "The producer sent 'pay 10 €' once and got offset {offset}. The topic has {stored}.",
        "生产者只发送了一次 'pay 10 €'，得到 offset {offset}。topic 中有 {stored}。",
        offset=offset,
        requests=requests["Produce"] - before,
        stored=stage.values(topic),
    )


@SUBJECT.lesson(
    "in-flight",
    brokers=3,
    question=Text(
        "Does order need max.in.flight.requests.per.connection=1?",
        "要保证顺序，必须设置 max.in.flight.requests.per.connection=1 吗？",
    ),
    explanation=Text(
        "Not with idempotence, the default: up to 5 requests may be in flight. Without it a request "
        "that fails and is retried lands behind the next one: {plain}. With it the leader knows the next "
        "sequence number and refused the request that came too early ({refusal}), so both were retried in "
        "order: {numbered}. A real producer with {in_flight} requests in flight kept the order of its records "
        "through the same failure: {kept}. More than 5 are refused: {limit}.",
        "开启幂等（默认）时不需要：最多可以有 5 个在途请求。不幂等时，失败后重试的请求会落在下一个请求之后：{plain}。"
        "幂等时 leader 知道下一个序号，拒绝了来得太早的请求（{refusal}），于是两者按顺序重试：{numbered}。"
        "真实的生产者有 {in_flight} 个在途请求，经历同样的故障后消息顺序不变：{kept}。超过 5 个会被拒绝：{limit}。",
    ),
)
def in_flight(stage: Stage) -> None:
    """The leader rejects a batch whose predecessor has failed, if batches have sequence numbers."""
    plain, numbered, sent = (
        stage.topic(noun, replicas=3) for noun in ("plain", "numbered", "producer")
    )
    _lose_a_broker(stage, plain, numbered, sent)
    _reject(stage, plain, _batch("A"))
    _accept(stage, plain, _batch("B"))
    _accept(stage, plain, _batch("A"))
    stage.show(plain)
    stage.say(
        "A and B are in flight. A is rejected with NOT_ENOUGH_REPLICAS, B is stored, A is retried: "
        "{plain}.",
        "A 和 B 都在途。A 以 NOT_ENOUGH_REPLICAS 被拒绝，B 已存储，A 重试：{plain}。",
        plain=stage.values(plain),
    )
    with stage.cluster.admin() as brokers:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        producer_id = brokers.ask(request, InitProducerIdResponse).producer_id
    zero, first, second = (
        _batch(value, producer_id, sequence) for sequence, value in enumerate(("0", "A", "B"))
    )
    _accept(stage, numbered, zero)
    _reject(stage, numbered, first)
    refusal = stage.send_batch(numbered, second)
    _accept(stage, numbered, first)
    _accept(stage, numbered, second)
    stage.show(numbered)
    stage.say(
        "The same with sequence numbers: B is refused with {refusal} until A is stored. {numbered}.",
        "带序号再来一次：A 存储之前，B 以 {refusal} 被拒绝。{numbered}。",
        refusal=refusal.name,
        numbered=stage.values(numbered),
    )
    _with_a_producer(stage, sent)


def _lose_a_broker(stage: Stage, *names: str) -> None:
    """Kill a broker: now a topic can require more replicas than are in sync."""
    cluster, lost = stage.cluster, stage.cluster.brokers[-1]
    stage.kill(lost)

    def is_known() -> bool:
        images = [cluster.node(broker).broker.image for broker in cluster.live_brokers]
        partitions = [image.partition(topic, 0) for image in images for topic in names]
        return all(row is not None and lost not in row.isr for row in partitions)

    stage.until(is_known, "every broker knows that two are in sync")


def _with_a_producer(stage: Stage, topic: str) -> None:
    requests = RequestCounter()
    settings = {
        "enable_idempotence": True,
        "retry_backoff_ms": 20,
        "stats_cb": requests,
        "statistics_interval_ms": 20,
        "batch_num_messages": 1,
    }
    producer = stage.producer(max_in_flight_requests_per_connection=5, **settings)
    producer.send(topic, "r0", partition=0).result(20)
    _require_replicas(stage, topic, 3)
    futures = [producer.send(topic, f"r{number}", partition=0) for number in range(1, 8)]
    # One request for the first record; the others are rejected and repeated.
    stage.until(lambda: requests["Produce"] >= 3, "the producer has retried")
    _require_replicas(stage, topic, 1)
    for future in futures:
        future.result(20)
    try:
        stage.producer(enable_idempotence=True, max_in_flight_requests_per_connection=6)
        limit = "none"
    except OttlaError as refused:
        limit = str(refused)
    stage.show(topic)
    stage.say(
        "A producer with 5 requests in flight, through the same failure: {kept}.",
        "有 5 个在途请求的生产者，经历同样的故障：{kept}。",
        in_flight=5,
        kept=stage.values(topic),
        limit=limit,
    )


def _batch(value: str, producer_id: int = -1, sequence: int = -1) -> bytearray:
    epoch = -1 if producer_id < 0 else 0
    return encode_batch(
        [Record(None, value.encode())],
        timestamp=0,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


def _reject(stage: Stage, topic: str, batch: bytearray) -> None:
    """Send a batch while the ISR is too small for acks=all."""
    _require_replicas(stage, topic, 3)
    code = stage.send_batch(topic, batch)
    assert code is ErrorCode.NOT_ENOUGH_REPLICAS, code
    _require_replicas(stage, topic, 1)


def _accept(stage: Stage, topic: str, batch: bytearray) -> None:
    code = stage.send_batch(topic, batch)
    assert code is ErrorCode.NONE, code


def _require_replicas(stage: Stage, topic: str, count: int) -> None:
    with stage.cluster.admin() as brokers:
        resource = Resource(ResourceType.TOPIC, topic)
        alter_config(brokers, resource, assign={_MIN_ISR: str(count)})
    stage.until(lambda: stage.topic_option(topic, _MIN_ISR) == str(count), "the option is set")
