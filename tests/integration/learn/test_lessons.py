"""Every lesson, played on a cluster: the explanation agrees with the observations."""

import re
import string
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from ottla.learn import course
from ottla.learn.asking import number_of
from ottla.learn.events import (
    LANGUAGES,
    NONE,
    GroupView,
    Step,
    TableView,
    Text,
    shown,
)
from ottla.learn.predictions.catalogue import PREDICTIONS
from ottla.learn.predictions.prediction import Number
from ottla.learn.scenarios import groups
from ottla.testing import Cluster

pytestmark = pytest.mark.slow

Facts = dict[str, Any]
# A reader waits at most that long for a lesson.
LIMIT_S = 15.0
# Words that Chinese tables share with English ones: terms, fields of a batch, keys of records.
TERMS = {
    *("broker", "controller", "topic", "key", "acks", "internal-topics", "ottla-producer"),
    *("magic", "crc", "attributes", "anna", "eva", "gina", "dora"),
}
# The outcome that each lesson must have.
OUTCOMES: dict[str, Callable[[Facts], bool]] = {
    "architecture": lambda f: (
        f["registered"] == [1, 2, 3]
        and f["registered_after"] == [key for key in (1, 2, 3) if key != f["leader"]]
        and f["controller"] in f["registered"]
        and f["coordinator"] in f["registered"]
        and {f["leader"], *f["followers"]} == {1, 2, 3}
        and f["copies"] == [["before"]] * 3
        and sorted(key for keys in f["owners"].values() for key in keys)
        == [f"architecture-{number}" for number in range(3)]
        and f["new_leader"] in f["followers"]
        and f["read"] == ["after"]
    ),
    "internal-topics": lambda f: (
        f["internal"] == ["__consumer_offsets", "__transaction_state"]
        and f["partitions"] == {"__consumer_offsets": 50, "__transaction_state": 5}
        and set(f["policies"].values()) == {"compact"}
        and f["offset_key"] == "internal-topics, internal-topics-0"
        and (f["offset_value"], f["transaction_key"]) == (1, "internal-topics")
        and f["producer_id"] >= 0
        and f["producer_epoch"] >= 0
    ),
    "names": lambda f: (
        f["right"] == ["/controller_epoch", "/admin/delete_topics", "__consumer_offsets"]
        and f["wrong"] == ["/controller_EPOCH", "/admin/reassign_part", "__consumers_offsets"]
        and "did you mean 'enable.idempotence'" in f["option_error"]
        and "use org.apache.kafka.common.serialization.StringSerializer" in f["class_error"]
        and f["stored"] == ["text"]
    ),
    "acks-1": lambda f: (
        f["lost_value"] not in f["readable"]
        and f["reused_offset"] == f["lost_offset"] == 2
        and f["new_leader"] != f["old_leader"]
        and f["old_leader_log"] == ["paid-1", "paid-2", "paid-4"]
    ),
    "acks-all": lambda f: (
        f["error"] == "NOT_ENOUGH_REPLICAS"
        and (len(f["isr_two"]), len(f["isr_one"])) == (2, 1)
        and f["end"] == f["with_two"] + 1 == 2
    ),
    "acks-0": lambda f: (
        (f["offset_with_0"], f["end_with_0"], f["error"]) == (-1, 0, "MESSAGE_TOO_LARGE")
    ),
    "high-watermark": lambda f: (
        (f["leo_cut"], f["hw_cut"], f["hw_healed"], f["pushes"]) == (2, 1, 2, 0)
        and f["fetches"] >= 1
        and f["read_cut"] == ["seen"]
        and f["read_healed"] == ["seen", "unseen"]
    ),
    "isr": lambda f: (
        f["isr_after"] == tuple(f["assigned"])
        and set(f["isr_during"]) == set(f["assigned"]) - {f["failed"]}
        and f["caught_up"] == ["one", "two", "three"]
    ),
    "unclean-election": lambda f: (
        f["leader_waiting"] == -1
        and f["new_leader"] == f["behind"]
        and (f["survivors"], f["lost"], f["default"]) == (["kept"], ["doomed"], "false")
    ),
    "slow-replica": lambda f: (
        f["behind"] >= 4000
        and f["isr_behind"] == f["isr_back"] == (1, 2, 3)
        and f["isr_late"] == tuple(key for key in (1, 2, 3) if key != f["slow"])
        and f["registered"] == [1, 2, 3]
        and (f["lag_ms"], f["old_options"]) == ("3000", 0)
        # The high watermark is the least end of the logs in the ISR, as in `high-watermark`.
        and (f["hw_behind"], f["hw_late"]) == (1, 4501)
    ),
    # The high watermark of the former leader is the end of its log: truncation to it would have
    # kept `doomed`.
    "truncation": lambda f: (
        f["stored_hw"] == f["end_before"] == 2
        and f["log_before"] == ["kept", "doomed"]
        and f["log_old"] == f["log_new"] == ["kept", "new"]
        and f["offset"] == 1
    ),
    "controller-duties": lambda f: (
        len(f["nodes"]) == len(set(f["nodes"])) == len(f["observed"]) == 7
        and f["log_dir_node"] == "/log_dir_event_notification"
        and f["topic_created"] == f"leader {f['leader']}, epoch 0, ISR {_ids(f['replicas_before'])}"
        and f["partition_added"].startswith("leader ")
        and f["died"] == f"leader {f['survivor']}, epoch 1, ISR {f['survivor']}"
        and f["changed"] == f"leader {f['survivor']}, epoch 1, ISR {_ids(f['replicas_before'])}"
        and f["preferred"].startswith(f"leader {f['leader']}, epoch 2")
        and f["moved"].endswith(f"ISR {_ids(f['replicas_after'])}")
        and f["replicas_after"] != f["replicas_before"]
        and f["deleted"] == NONE
    ),
    "controller": lambda f: (
        f["new_controller"] != f["old_controller"]
        and f["new_epoch"] == f["old_epoch"] + 1
        and f["leaders_after"] == f["first_live"]
        and f["leaders_preferred"] == [row[0] for row in f["assignment"].values()]
    ),
    "create-topic": lambda f: (
        f["leaders"] == [row[0] for row in f["assignment"].values()]
        and sorted(f["leaders"]) == [1, 2, 3]
        and all(
            (f"create-topic-{number}" in names) == (broker in f["assignment"][number])
            for broker, names in f["folders"].items()
            for number in range(3)
        )
    ),
    "direct-to-leader": lambda f: (
        set(f["answers"]) == {f["leader"]} and f["refusal"] == "NOT_LEADER_OR_FOLLOWER"
    ),
    "send-path": lambda f: (
        [step.en for step in f["steps"]]
        == ["interceptor", "serializer", "partitioner", "acknowledgement"]
        and f["is_other_thread"]
        and "_Forgetful" in f["none_error"]
    ),
    "order": lambda f: (
        all(values == sorted(values) for values in f["by_key"].values())
        and f["read"] != f["sent"]
        and len(set(f["places"].values())) == 3
    ),
    "partitioner": lambda f: f["computed"] == f["found"] and f["sticky"] == 1,
    "retries": lambda f: (
        f["plain"].count("order-1") >= 2 and f["idempotent"] == ["first", "order-1"]
    ),
    "batches": lambda f: (
        f["batches_many"] < 20 and f["bytes_compressed"] < f["bytes_plain"] / 2 and f["end"] == 20
    ),
    "acks-2": lambda f: (
        {acks: shown(answer, "en") for acks, answer in f["answers"].items()}
        == {0: "accepted", 1: "accepted", -1: "accepted", 2: "INVALID_REQUIRED_ACKS"}
        and f["end"] == 3
        and "acks" in f["client_error"]
    ),
    "acks-1-duplicates": lambda f: (
        f["stored"][0] == "first"
        and len(f["stored"]) >= 3
        and set(f["stored"][1:]) == {"pay 10 €"}
        and f["requests"] >= 2
    ),
    "in-flight": lambda f: (
        f["plain"] == ["B", "A"]
        and f["numbered"] == ["0", "A", "B"]
        and f["refusal"] == "OUT_OF_ORDER_SEQUENCE_NUMBER"
        and f["kept"] == [f"r{number}" for number in range(8)]
        and "<= 5" in f["limit"]
    ),
    "unsent-records": lambda f: (
        (f["acknowledged"], f["queued"]) == (3, 5)
        and f["stored"] == [f"acknowledged-{number}" for number in range(3)]
    ),
    "load-test": lambda f: (
        f["read"] == f["end"] == f["rounds"] * f["count"] + 1 == 5001
        and f["factor"] > 1
        and all(f["p50_ms"][name] <= f["p99_ms"][name] for name in f["rates"])
        and all("–" in rate for rate in f["rates"].values())
    ),
    "subscription": lambda f: (
        (len(f["before"]), len(f["with_topic"]), len(f["with_partitions"])) == (1, 2, 4)
        and f["read"] == ["subscription.orders-de-2", "subscription.orders-fr-0"]
        and f["assignments"] >= 3
    ),
    "other-queues": lambda f: (
        f["ordered"] == [["r0", "r2", "r4"], ["r1", "r3", "r5"]]
        and f["other_group"] == [f"r{number}" for number in range(6)]
        and f["committed"] == {"other-queues-0": 3, "other-queues-1": 3}
        and f["log_after"] == 6
    ),
    "rebalance": lambda f: (
        sorted(f["before_c1"] + f["before_c2"]) == f["after_c1"] == [0, 1, 2]
        and f["after_values"] == [b"late-0", b"late-1", b"late-2"]
    ),
    "idle-consumer": lambda f: (
        (f["idle"], f["members"], f["partitions"], f["sizes_after"]) == (1, 3, 2, [1, 1])
    ),
    "assignors": lambda f: (
        f["roundrobin_owned"] == f["dealt_by_name"] != f["dealt_by_hash"]
        and f["range_sizes"] == [4, 2]
        and f["roundrobin_sizes"] == f["cooperative_sizes"] == f["kip848_sizes"] == [3, 3]
    ),
    "coordinator": lambda f: (
        f["leader"] == f["coordinator"] != f["new_coordinator"]
        and f["assignments"] == 1
        and f["committed_after"] == {"coordinator-0": 2}
    ),
    "committed-offset": lambda f: (
        (f["last_read"], f["committed"], f["resumed"], f["resumed_value"]) == (2, 3, 3, b"d")
    ),
    "when-to-commit": lambda f: (f["lost"], f["repeated"], f["not_lost"]) == (["b"], ["a"], []),
    "auto-commit": lambda f: (
        (f["first"], f["second"]) == (["a", "b"], ["c", "d"])
        and (f["after_first"], f["after_second"]) == ({}, {"auto-commit.loop-0": 2})
        and (f["repeated"], f["lost"]) == (["c", "d"], [])
        and f["after_queue"] == {"auto-commit.queue-0": 4}
        and f["queued"] == f["lost_queued"] == ["e", "f", "g", "h"]
        and f["rest"] == ["later"]
    ),
    "offset-reset": lambda f: (
        f["earliest"] == f["stored"]
        and f["with_commit"] == f["stored"][1:]
        and not any(value.startswith("old") for value in f["latest"])
    ),
    "lag": lambda f: (
        (f["lag"], f["lag_after"], f["members_before"], f["members_after"]) == (30, 0, 1, 2)
    ),
    "replay": lambda f: (
        f["billing"] == f["audit"] == f["again"] == ["a", "b", "c"] and f["log_after"] == 3
    ),
    "one-partition": lambda f: (
        (f["partition"], f["start"], f["members"]) == (1, 2, 0)
        and f["values"] == f["by_time"] == ["r7", "r10"]
    ),
    "pull": lambda f: (
        f["while_paused"] == 0
        and f["after_resume"] == ["a", "b", "c"]
        and f["fetches"] <= 5 + 1000 * f["seconds"] / f["wait_ms"]
    ),
    "transaction": lambda f: (
        f["committed_open"] == []
        and f["uncommitted"] == ["aborted", "committed"]
        and f["log"] == ["aborted", "marker", "committed", "marker"]
        and (f["committed_end"], f["offsets"]) == (["committed"], [2])
    ),
    "fencing": lambda f: (f["error"], f["values"]) == ("Fenced", ["new"]),
    "exactly-once": lambda f: (
        f["committed_crash"] == NONE
        and f["output"] == ["A", "B"]
        and f["log"].count("A") == 2
        and f["committed_end"] == 2
    ),
    "log-directory": lambda f: (
        f["bases"] == [0, 2, 4, 6] and f["segment"] == "00000000000000000004.log"
    ),
    "batch-format": lambda f: (
        (f["magic"], f["records"], f["end"]) == (2, 3, 3)
        and f["crc"] == f["crc32c"] != f["crc32"]
        and (f["damaged"], f["old"]) == ("CORRUPT_MESSAGE", "INVALID_RECORD")
    ),
    "memory": lambda f: (
        f["stored"] >= f["written"] >= 23
        and f["grown"] < f["written"] / 4
        and (f["options"], f["is_thread"]) == (0, True)
    ),
    "num-partitions": lambda f: (
        (f["first_option"], f["second_option"]) == ("2", "4")
        and (f["early_before"], f["early_after"], f["late"], f["explicit"]) == (2, 2, 4, 1)
    ),
    "grow-partitions": lambda f: (
        f["error"] == "INVALID_PARTITIONS" and f["moved"] == ["anna", "hugo"]
    ),
    "compaction": lambda f: (
        f["compacted"] == ["anna=2", "gina=1", "eva=∅", "anna=3"]
        and f["end"] == ["gina=1", "anna=3", "anna=4"]
    ),
    "retention": lambda f: (
        (f["kept"], f["oldest"], f["start"], f["resumed"]) == ([120, 10], 120, 2, 2)
        and f["committed"] < f["start"]
    ),
    "member-timeouts": lambda f: (
        f["after_poll"] == f["after_session"] == [0, 1]
        and len(f["returned"]) == 1
        and f["poll_s"] >= 0.9 * f["poll_ms"] / 1000
        # The last heartbeat may be older than the end of the member.
        and f["session_s"] >= 0.5 * f["session_ms"] / 1000
    ),
    "static-membership": lambda f: (
        f["static"] == 0 and f["dynamic"] >= 1 and f["owned_after"] == f["owned_before"]
    ),
    "cooperative-rebalance": lambda f: (
        f["eager_revoked"] == [0, 1, 2, 3]
        and f["cooperative_revoked"] == f["moved"]
        and sorted(f["kept"] + f["moved"]) == [0, 1, 2, 3]
        and (len(f["kept"]), len(f["moved"])) == (2, 2)
    ),
    "kraft": lambda f: (
        f["isr_before"] == [1, 2, 3]
        and f["isr_after"] == [key for key in (1, 2, 3) if key != f["failed"]]
        and f["version_after"] > f["version_before"]
        and f["controller"] != f["failed"]
    ),
    "eligible-leaders": lambda f: (
        f["isr_one"] == (f["leader"],)
        and (f["hw_one"], f["leo_one"]) == (1, 2)
        and f["log_candidate"] == ["committed"]
        and (f["leader_waiting"], f["elr"]) == (-1, [])
        and f["survivors"] == ["committed", "alone"]
    ),
    "follower-fetching": lambda f: (
        f["without"] == 0 < f["with_rack"] and f["values"] == ["a", "b", "c"]
    ),
    "dead-letters": lambda f: (
        (f["while_paused"], f["members"], f["tries"]) == (0, ["c1"], 3)
        and f["processed"] == [1, 2, 4]
        and f["committed"] == 4
        and f["letter"]["origin"] == "dead-letters.orders-0 @ 2"
        and "invalid literal" in f["letter"]["error"]
    ),
    "delivery-timeout": lambda f: (
        f["error"] == "TimedOut"
        and f["after_resume"] == ["first", "paid"]
        and f["stored"] == ["first", "paid", "paid"]
    ),
}


class Played(NamedTuple):
    """The report of a lesson, and how long a reader waits for it, with the start of the cluster."""

    report: course.Report
    seconds: float


@pytest.fixture(scope="module")
def play() -> Iterator[Callable[[str], Played]]:
    """Play a lesson, once; lessons with equal clusters share one, and leave it healthy."""
    clusters: dict[tuple[int, frozenset[tuple[str, str]]], tuple[Cluster, float]] = {}
    played: dict[str, Played] = {}
    with ExitStack() as stack:

        def get(name: str) -> Played:
            lesson = course.LESSONS[name]
            key = lesson.brokers, frozenset(lesson.options.items())
            if key not in clusters:
                begin = time.monotonic()
                cluster = stack.enter_context(course.cluster_for(lesson))
                clusters[key] = cluster, time.monotonic() - begin
            if name not in played:
                cluster, start_s = clusters[key]
                begin = time.monotonic()
                report = course.play(lesson, cluster)
                played[name] = Played(report, start_s + time.monotonic() - begin)
            return played[name]

        yield get


def test_every_lesson_has_an_asserted_outcome() -> None:
    """No lesson is without a test, and there are at least twelve."""
    assert OUTCOMES.keys() == course.LESSONS.keys()
    assert len(OUTCOMES) >= 12


@pytest.mark.parametrize("name", course.LESSONS)
def test_lesson(name: str, play: Callable[[str], Played]) -> None:
    """The cluster does what the lesson explains, and every text shows its facts in both languages."""
    lesson = course.LESSONS[name]
    report, seconds = play(name)
    assert seconds < LIMIT_S
    assert OUTCOMES[name](report.facts), report.facts
    texts = [(event.text, event.facts) for event in report.events if isinstance(event, Step)]
    tables = [(event.title, {}) for event in report.events if isinstance(event, TableView)]
    texts += [*tables, (lesson.question, {}), (lesson.explanation, report.facts)]
    for text, facts in texts:
        assert _fields(text.en) == _fields(text.zh)
        rendered = [text.render(language, facts) for language in LANGUAGES]
        assert all("{" not in line or "{" in str(facts) for line in rendered)
        assert re.search(r"[\u4e00-\u9fff]", rendered[1])


@pytest.mark.parametrize("name", course.LESSONS)
def test_prediction_is_asked_before_the_result(name: str, play: Callable[[str], Played]) -> None:
    """A step with the result follows the question, and a number is observed by the lesson."""
    prediction, report = PREDICTIONS[name], play(name).report
    steps = [event for event in report.events if isinstance(event, Step)]
    assert prediction.after < len(steps)
    if isinstance(prediction, Number):
        earlier = steps[prediction.after - 1].facts if prediction.after else {}
        assert prediction.fact not in earlier
        assert number_of(report.facts[prediction.fact]) >= 0


@pytest.mark.nightly("tests/integration/learn/test_lessons.py::test_lesson")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", course.LESSONS)
def test_lesson_shows_the_same_ten_times(name: str) -> None:
    """A claim that holds in nine of ten runs is none; each run has a cluster of its own."""
    lesson = course.LESSONS[name]
    for _ in range(10):
        with course.cluster_for(lesson) as cluster:
            facts = course.play(lesson, cluster).facts
        assert OUTCOMES[name](facts), facts


@pytest.mark.parametrize("name", [lesson.name for lesson in groups.SUBJECT.lessons])
def test_lessons_about_groups_show_who_owns_what(name: str, play: Callable[[str], Played]) -> None:
    """Each has pictures of a group in which every partition has one owner."""
    views = [event for event in play(name).report.events if isinstance(event, GroupView)]
    assert views
    for view in views:
        owned = [key for keys in view.members.values() for key in keys]
        assert len(owned) == len(set(owned)) > 0


def test_consumers_find_their_coordinator_while_followers_are_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The topic of the offsets exists before the controller, which creates it, may be cut off."""
    lesson = course.LESSONS["high-watermark"]
    exists = []
    with course.cluster_for(lesson) as cluster:
        isolate = cluster.isolate

        def note(broker: int) -> None:
            topics = [cluster.node(number).broker.image.topics for number in cluster.brokers]
            exists.append(all("__consumer_offsets" in names for names in topics))
            isolate(broker)

        monkeypatch.setattr(cluster, "isolate", note)
        course.play(lesson, cluster)
    assert exists == [True, True]


@pytest.mark.parametrize("name", course.LESSONS)
def test_tables_are_translated(name: str, play: Callable[[str], Played]) -> None:
    """Chinese tables have English words only if these are Kafka's terms or names of the lesson."""
    tables = [event for event in play(name).report.events if isinstance(event, TableView)]
    for table in tables:
        cells = [cell for row in table.rows for cell in row if isinstance(cell, str | Text)]
        for text in (*table.columns, *cells):
            words = text.zh if isinstance(text, Text) else text
            assert words in TERMS or not re.fullmatch(r"[a-z]+([ -][a-z]+)*", words), words


def test_chinese_names_the_steps_of_a_record(play: Callable[[str], Played]) -> None:
    """A fact that is a word is translated, too."""
    facts = play("send-path").report.facts
    text = course.LESSONS["send-path"].explanation.render("zh", facts)
    assert "顺序为：拦截器、序列化器、分区器、确认。" in text


def test_explanations_contain_facts_of_the_cluster() -> None:
    """Every explanation has values that only the running cluster can supply."""
    assert all(_fields(lesson.explanation.en) for lesson in course.LESSONS.values())


def _ids(brokers: list[int]) -> str:
    return ",".join(map(str, sorted(brokers)))


def _fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}
