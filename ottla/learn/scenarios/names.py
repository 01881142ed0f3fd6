"""The lesson about names that tutorials misspell."""

from collections.abc import Callable
from typing import Any

from ottla.base.errors import OttlaError
from ottla.cluster.znodes import (
    ControllerEpochNode,
    DeleteTopicsNode,
    ReassignPartitionsNode,
    TopicsNode,
)
from ottla.learn import observation
from ottla.learn.events import Text
from ottla.learn.lesson import Subject
from ottla.learn.stage import Stage

SUBJECT = Subject("architecture")
_OFFSETS = "__consumer_offsets"
_RIGHT = (ControllerEpochNode.PATH, DeleteTopicsNode.PATH, _OFFSETS)
_WRONG = ("/controller_EPOCH", "/admin/reassign_part", "__consumers_offsets")
_PACKAGE = "org.apache.kafka.common.serialization"
_YES, _NO = Text("yes", "是"), Text("no", "否")
_WRONG_PACKAGE = "org.apache.kafka.serialization"


@SUBJECT.lesson(
    "names",
    brokers=3,
    question=Text(
        "Tutorials misspell znodes, topics, options and packages. Which names are right?",
        "教程里常写错 znode、topic、选项和包名。正确的名字是什么？",
    ),
    explanation=Text(
        "The table above has them: a cluster has the right ones only. Before KIP-455 the tools requested a reassignment with the "
        "znode {reassign_node}. This client refuses an option that does not exist; Java's client only "
        "mentions it in its log. Both refuse a serializer from a package that does not exist. With "
        "org.apache.kafka.common.serialization.StringSerializer the record '{stored}' was sent.",
        "见上表：集群里只有正确的名字。KIP-455 之前，工具通过 znode {reassign_node} 请求重分配。"
        "这个客户端拒绝不存在的选项，Java 客户端只在日志中提到它。包名写错的序列化器两者都拒绝。"
        "使用 org.apache.kafka.common.serialization.StringSerializer 时发送成功：{stored}。",
    ),
)
def names(stage: Stage) -> None:
    """Correct names exist in the cluster and are accepted; misspelled ones are not."""
    topic = stage.topic()
    member = stage.consumer(topic, group_id=stage.name, name="c1", enable_auto_commit=False)
    stage.settle([member], [1])
    exists = {name: _exists(stage, name) for name in (*_RIGHT, *_WRONG)}
    stage.table(
        Text("Names", "名称"),
        Text("name,exists", "名称,是否存在"),
        [(name, _YES if is_there else _NO) for name, is_there in exists.items()],
    )
    stage.say(
        "{right_count} of these {names_count} names exist: those with the right spelling.",
        "这 {names_count} 个名字中存在 {right_count} 个：拼写正确的那些。",
        right_count=sum(exists.values()),
        names_count=len(exists),
        right=[name for name, is_there in exists.items() if is_there],
        wrong=[name for name, is_there in exists.items() if not is_there],
        reassign_node=ReassignPartitionsNode.PATH,
    )
    producer = stage.producer(value_serializer=f"{_PACKAGE}.StringSerializer")
    producer.send(topic, "text", partition=0).result(20)
    stage.show(topic)
    stage.say(
        "enable.idompotence ({option_error}) and a wrong package ({class_error}) are refused.",
        "enable.idompotence（{option_error}）和错误的包名（{class_error}）都被拒绝。",
        option_error=_refusal(lambda: stage.producer(enable_idompotence=True)),
        class_error=_refusal(
            lambda: stage.producer(value_serializer=f"{_WRONG_PACKAGE}.StringSerializer")
        ),
        stored=stage.values(topic),
    )


def _exists(stage: Stage, name: str) -> bool:
    if name.startswith("/"):
        return observation.znode(stage.cluster, name) is not None
    return name in observation.znodes(stage.cluster, TopicsNode.PATH)


def _refusal(attempt: Callable[[], Any]) -> str:
    try:
        attempt()
    except OttlaError as refused:
        return str(refused)
    return "none"
