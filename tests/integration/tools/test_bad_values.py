"""Values that no command can use: one sentence that says what to do, and nothing is changed."""

import re
from collections.abc import Iterator
from typing import Any

import click
import pytest

from ottla.client.admin import configs, offsets, topics
from ottla.client.admin.configs import Resource, ResourceType
from ottla.testing import Cluster
from ottla.tools.lazy import names_something
from tests.integration.tools.test_mirror import produce
from tests.unit.tools.test_every_verb import COMMANDS, WORDS

pytestmark = pytest.mark.slow

_TOO_LARGE = "99999999999999999999"
# Numbers of records, which may be of any size, and verbs that run until they are stopped.
_UNLIMITED = {"--records", "--warmup", "--count"}
_ENDLESS = {
    "up", "console", "zookeeper start", "broker start", "perf verifiable-produce",
    "perf verifiable-consume",
}  # fmt: skip


@pytest.fixture(name="bootstrap", scope="module")
def _bootstrap() -> Iterator[str]:
    with Cluster(options={"group.initial.rebalance.delay.ms": "0"}) as cluster:
        cluster.create_topic("t", partitions=1)
        produce(cluster, "t", [b"1", b"2"])
        with cluster.admin() as brokers:
            offsets.commit_offsets(brokers, "g", {("t", 0): offsets.CommittedOffset(1)})
        yield cluster.bootstrap


def _options(kind: type[click.ParamType]) -> list[tuple[str, str]]:
    return [
        (name, max(option.opts, key=len))
        for name, command in COMMANDS.items()
        for option in command.params
        if isinstance(option, click.Option) and isinstance(option.type, kind)
        if (kind is click.types.FloatParamType or name not in _ENDLESS)
        and not _UNLIMITED & set(option.opts)
    ]


@pytest.mark.parametrize(("name", "option"), _options(click.types.IntParamType))
def test_number_that_no_request_can_contain(
    name: str,
    option: str,
    run_alone: Any,
    bootstrap: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Any,
) -> None:
    """It is refused with a sentence, or larger than all that exists."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", bootstrap)
    monkeypatch.chdir(tmp_path)
    words = [word.replace("NEW", str(tmp_path / "new")) for word in WORDS.get(name, [])]
    done = run_alone(*name.split(), *words, option, _TOO_LARGE, stdin=b"line\n")
    assert done.code in (0, 1, 2)
    assert done.code == 0 or done.errors


@pytest.mark.parametrize("value", ["nan", "inf"])
@pytest.mark.parametrize(("name", "option"), _options(click.types.FloatParamType))
def test_number_must_be_finite(name: str, option: str, value: str, run_alone: Any) -> None:
    """The sentence quotes the value."""
    done = run_alone(*name.split(), *WORDS.get(name, []), option, value)
    assert (done.code, done.out) == (2, b"")
    assert f"{value!r} is not a finite number" in done.errors


@pytest.mark.parametrize(
    "line",
    [
        "produce t --partition 2147483648",
        "consume t -e --partition 2147483648",
        "topic create u --partitions 2147483648",
        "topic create u --replication-factor 32768",
    ],
)
def test_number_outside_of_the_range_of_a_request(
    line: str, run_alone: Any, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence has the range."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", bootstrap)
    done = run_alone(*line.split(), stdin=b"line\n")
    assert (done.code, done.out) == (2, b"")
    assert "is not in the range" in done.errors


def test_key_delimiter_must_not_be_empty(
    run_alone: Any, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence names the option."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", bootstrap)
    done = run_alone("produce", "t", "--key-delimiter", "", stdin=b"line\n")
    assert (done.code, done.out) == (2, b"")
    assert "Invalid value for -K: it must not be empty" in done.errors


def test_group_must_have_a_name(
    run_alone: Any, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence has the option of clients."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", bootstrap)
    done = run_alone("consume", "t", "-e", "-X", "group.id=")
    assert (done.code, done.out) == (1, b"")
    assert done.errors == "ottla: group.id='' is blank: name a group\n"


@pytest.mark.parametrize("text", ["", " "])
@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        (name, parameter)
        for name, command in COMMANDS.items()
        for parameter in command.params
        if names_something(parameter)
    ],
)
def test_blank_text_is_not_the_default(
    name: str,
    parameter: click.Parameter,
    text: str,
    run_alone: Any,
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A variable of a shell that is not set must not choose another cluster, topic or folder."""
    monkeypatch.chdir(tmp_path)
    words = {"zookeeper start": ["--data", "d"]}.get(name, WORDS.get(name, []))
    if name in ("zookeeper export", "zookeeper import"):
        words = ["--connect", "c", "--data", "d"]
    if isinstance(parameter, click.Option):
        done = run_alone(*name.split(), *words, parameter.opts[0], text)
    else:
        arguments = [row.name for row in COMMANDS[name].params if isinstance(row, click.Argument)]
        before = ["a"] * arguments.index(parameter.name)
        done = run_alone(*name.split(), "--", *before, *([text] * (len(arguments) - len(before))))
    assert (done.code, done.out) == (2, b""), done
    assert "must not be blank" in done.errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", ["produce", "consume", "topic create", "topic describe"])
def test_name_that_no_topic_can_have(
    verb: str, run_alone: Any, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence says which characters a name has."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", bootstrap)
    done = run_alone(*verb.split(), "a/b", stdin=b"line\n")
    assert (done.code, done.out) == (1, b"")
    # The broker's words are Kafka's, the words for a response without a message are ours.
    assert len(re.findall("ASCII (letters, digits|alphanumerics)", done.errors)) == 1


def test_failure_of_many_records_is_one_sentence(run: Any, ottla_cluster: Cluster) -> None:
    """`ottla perf produce` prints the reason once, and not for each record.

    On a busy machine librdkafka refuses the first record itself: it is then not undelivered.
    """
    done = run("perf", "produce", "a/b", "--records", "100")
    assert (done.code, done.out) == (1, b"")
    *undelivered, reason = done.errors.splitlines()
    assert reason.startswith("ottla: ")
    assert [line.strip() for line in undelivered] in (
        [],
        ["A record was not delivered: The topic name is not allowed, or the topic is internal."],
    )
    with ottla_cluster.admin() as brokers:
        assert [row.name for row in topics.list_topics(brokers)] == []


def test_option_that_does_not_exist_is_not_reset(run: Any, ottla_cluster: Cluster) -> None:
    """`ottla topic config --unset` refuses it, and changes no other option."""
    ottla_cluster.create_topic("t", partitions=1, config={"retention.ms": "5"})
    done = run("topic", "config", "t", "--unset", "retention.ms", "--unset", "retention.msec")
    assert (done.code, done.out) == (2, b"")
    assert "'retention.msec' is not an option of topics" in done.errors
    with ottla_cluster.admin() as brokers:
        rows = configs.describe_config(brokers, Resource(ResourceType.TOPIC, "t"))
        assert {row.name: row.value for row in rows}["retention.ms"] == "5"


def test_state_that_no_group_can_have(run: Any) -> None:
    """The sentence lists the states; they are read in any case of letters."""
    done = run("group", "list", "--state", "Stabel")
    assert (done.code, done.out) == (2, b"")
    assert "'Stabel' is not one of" in done.errors
    assert "'stable', 'empty'" in done.errors
    assert run("group", "list", "--state", "stable").code == 0


@pytest.mark.parametrize("host", ["..", "a..b", "a" * 64])
@pytest.mark.parametrize(
    "line",
    [
        "topic list",
        "produce t",
        "up --data new --port 0 -o allow.insecure.listeners=true",
        "doctor",
    ],
)
def test_host_that_is_no_name(
    line: str, host: str, run_alone: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence quotes it."""
    monkeypatch.chdir(tmp_path)
    option = ["--host", host] if line.startswith("up") else ["--bootstrap", f"{host}:9092"]
    done = run_alone(*line.split(), *option)
    assert done.code == 1
    assert host in done.errors + done.out.decode()
    assert "idna" not in done.errors + done.out.decode()
    assert "is not the name of a host" in done.errors + done.out.decode()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("topic describe \udcff", "is not UTF-8 text"),
        ("topic create t --config k=\udcff", "is not UTF-8 text"),
        ("topic list --command-config a\0b", "has a NUL character"),
        ("topic create t --partitions \u0663", "is not a number"),
        ("topic create t --partitions 1_0", "is not a number"),
        (f"topic create t --partitions {'9' * 5000}", "is not a number"),
        ("topic list --bootstrap h:\u0663", "is not a port"),
        (f"topic list --bootstrap h:{'9' * 5000}", "is not a port"),
        ("broker metrics --http h:0", "is not of the form HOST:PORT"),
        (f"broker metrics --http h:{'9' * 20}", "is not of the form HOST:PORT"),
        ("topic search t --http h:\u0663", "is not of the form HOST:PORT"),
        ("consume t -e -o \u0663", "is not a position"),
        ("consume t -e -o @1969-12-31T23:59:59.999Z", "is before 1970"),
        ("consume t -e -o @-99999999h", "is before 1970"),
        ("cluster elect t:", "use the form orders:0,1"),
        (f"cluster elect t:{'9' * 5000}", "use the form orders:0,1"),
        ("cluster move t --to 0,,1", "is not a list of broker ids"),
    ],
)
def test_text_that_is_no_value_of_its_kind(
    line: str, reason: str, run_alone: Any, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence quotes it, and is short even if the text is not."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", bootstrap)
    done = run_alone(*line.split(" "))
    assert done.code in (1, 2)
    assert done.out == b""
    assert reason in done.errors
    assert len(done.errors) < 1000


@pytest.mark.parametrize(
    "line",
    [
        "topic create {}",
        "topic describe {}",
        "topic delete {} --yes",
        "topic copy t {}",
        "group delete {} --yes",
        "transaction describe {}",
    ],
)
def test_name_that_no_request_can_contain(
    line: str, run_alone: Any, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence has the reason, and the beginning of the name."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", bootstrap)
    done = run_alone(*line.format("x" * 70_000).split())
    assert (done.code, done.out) == (1, b"")
    assert done.errors.startswith("ottla: ")
    assert "xxxxxxxxxx" in done.errors
    assert len(done.errors) < 1000
