"""`kafka-jmx` prints what Apache Kafka 4.3.0's JmxTool prints, from a broker's HTTP port."""

import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from ottla.testing import Cluster
from ottla_scripts import entry
from ottla_scripts.jmx import reader, tool

pytestmark = pytest.mark.slow

_LEADERS = "kafka.server:type=ReplicaManager,name=LeaderCount"
_ONCE = ("--one-time", "--date-format", "'T'")
Jmx = Callable[..., tuple[int, list[str], list[str]]]


@pytest.fixture(name="served", scope="module")
def _served() -> Iterator[Cluster]:
    """Return a broker with an HTTP port, which leads two partitions."""
    with Cluster(options={"metrics.listener": "127.0.0.1:0"}) as cluster:
        cluster.create_topic("a", partitions=2)
        yield cluster


@pytest.fixture(name="jmx")
def _jmx(served: Cluster, capsys: pytest.CaptureFixture[str]) -> Jmx:
    """Return a function that runs `kafka-jmx` against the broker."""
    address = served.node(served.brokers[0]).monitoring_address
    assert address is not None

    def run(*command_line: str) -> tuple[int, list[str], list[str]]:
        url = f"service:jmx:rmi:///jndi/rmi://{address[0]}:{address[1]}/jmxrmi"
        code = entry.run("kafka-jmx", [*command_line, "--jmx-url", url])
        printed = capsys.readouterr()
        errors = printed.err.splitlines()
        if errors and errors[0] == f"Trying to connect to JMX url: {url}":
            errors = errors[1:]
        return code, printed.out.splitlines(), errors

    return run


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("original", [f'"time","{_LEADERS}:Value"', "T,2"]),
        ("nonsense", [f'"time","{_LEADERS}:Value"', "T,2"]),
        ("properties", ["time=T", f"{_LEADERS}:Value=2"]),
        ("CSV", ['time,"T"', f'{_LEADERS}:Value,"2"']),
        ("tsv", ["time\tT", f"{_LEADERS}:Value\t2"]),
    ],
)
def test_report_has_the_form_of_apache_kafka(jmx: Jmx, form: str, expected: list[str]) -> None:
    """The lines are those recorded from JmxTool, apart from the value."""
    assert jmx("--object-name", _LEADERS, *_ONCE, "--report-format", form) == (0, expected, [])


def test_beans_of_a_pattern_are_sorted_columns(jmx: Jmx) -> None:
    """Only the requested attributes are printed; an interval of -1 means once."""
    code, lines, _ = jmx(
        *("--object-name", "kafka.server:type=ReplicaManager,name=*Par*", "--attributes", "Value"),
        *("--object-name", "kafka.server:name=LeaderCount,type=ReplicaManager"),
        *("--reporting-interval", "-1"),
    )
    names = re.findall(r'"([^"]+)"', lines[0])
    assert code == 0
    assert names[0] == "time"
    assert names[1:] == sorted(names[1:])
    # The name is the registered one, whatever the order of the query.
    assert f"{_LEADERS}:Value" in names
    values = dict(zip(names, lines[1].split(","), strict=True))
    assert values["kafka.server:type=ReplicaManager,name=PartitionCount:Value"] == "2"
    assert re.fullmatch(r"\d{13}", values["time"])


def test_all_beans_are_printed_by_default(jmx: Jmx) -> None:
    """Numbers and texts are written as Java writes them."""
    code, lines, _ = jmx("--one-time", "true", "--report-format", "properties")
    values = dict(line.split(":Value=") for line in lines if ":Value=" in line)
    assert code == 0
    assert len(lines) > 300
    assert values["kafka.server:type=SessionExpireListener,name=SessionState"] == "CONNECTED"
    assert "kafka.log:type=Log,name=Size,topic=a,partition=1" in values
    assert any(re.fullmatch(r".*:MeanRate=\d\.\d+(E-\d+)?", line) for line in lines)


def test_reports_follow_each_other_until_stopped(jmx: Jmx, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pause is the rest of the interval, and Ctrl-C ends the script."""
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(tool, "time", SimpleNamespace(monotonic=time.monotonic, sleep=pause))
    code, lines, _ = jmx("--object-name", _LEADERS, "--date-format", "'T'")
    assert (code, lines) == (130, [f'"time","{_LEADERS}:Value"', "T,2", "T,2"])
    assert all(0 < seconds <= 2 for seconds in pauses)


@pytest.mark.parametrize("attributes", ["Nope", "Value,Nope"])
def test_nothing_is_printed_if_a_bean_lacks_an_attribute(jmx: Jmx, attributes: str) -> None:
    """JmxTool is silent; the reason is on standard error."""
    code, lines, errors = jmx("--object-name", _LEADERS, *_ONCE, "--attributes", attributes)
    assert (code, lines) == (0, [])
    assert f"lack an attribute of {attributes}" in errors[0]


@pytest.mark.parametrize(
    ("command_line", "sentence"),
    [
        (
            ["--object-name", "kafka.none:type=None"],
            r"No matched attributes for the queried objects \[kafka.none:type=None\]\.",
        ),
        (
            ["--object-name", "kafka.*:type=ReplicaManager,*", "--attributes", "Nope"],
            r"No matched attributes for the queried objects \[kafka.\*:type=ReplicaManager,\*\]\.",
        ),
        (
            ["--object-name", "nonsense"],
            r"javax.management.MalformedObjectNameException : .*'nonsense'.*",
        ),
        (["--object-name", "kafka.none:type=None", "--reporting-interval", "x"],
         "Cannot parse argument 'x' of option reporting-interval"),
        (["--wait"], "--wait needs --object-name.*"),
        (["--date-format", "bogus"], "Illegal pattern character 'b'"),
        (["--jmx-auth-prop", "user"], "--jmx-auth-prop must be username=password"),
    ],
)  # fmt: skip
def test_error_is_a_sentence_with_exit_code_1(
    jmx: Jmx, command_line: list[str], sentence: str
) -> None:
    """If JmxTool has a sentence for an error, ours is the same."""
    code, lines, errors = jmx("--one-time", *command_line)
    assert (code, lines) == (1, [])
    assert re.fullmatch(sentence, errors[0])


def test_missing_beans_are_waited_for(jmx: Jmx, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--wait` looks again every 100 ms; after 10 s, the missing names are an error."""
    times = iter(range(0, 100, 4))
    fake = SimpleNamespace(monotonic=lambda: next(times), sleep=lambda seconds: None)
    # The broker's threads continue with the real clock.
    monkeypatch.setattr(reader, "time", fake)
    arguments = ["--object-name", _LEADERS, "--object-name", "kafka.none:type=None"]
    code, lines, errors = jmx(*arguments, *_ONCE, "--wait")
    assert (code, lines) == (1, [])
    assert errors == [
        *["Could not find all object names, retrying"] * 2,
        "Could not find all requested object names after 10000 ms. Missing kafka.none:type=None",
    ]
    assert jmx(*arguments, *_ONCE)[1] == [f'"time","{_LEADERS}:Value"', "T,2"]


def test_json_has_the_beans_of_each_report(jmx: Jmx) -> None:
    """An extension: one line of JSON for each report."""
    _, lines, _ = jmx("--object-name", _LEADERS, *_ONCE, "--output", "json")
    assert [json.loads(line) for line in lines] == [
        {"time": "T", "beans": {_LEADERS: {"Value": 2}}}
    ]


def test_port_without_http_is_an_error_that_says_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a closed port nor one with another protocol is retried for longer than JmxTool does."""
    monkeypatch.setattr(reader, "_PATIENCE_MS", 0)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        name = f"127.0.0.1:{probe.getsockname()[1]}"
    assert entry.run("kafka-jmx", ["--one-time", "--jmx-url", name]) == 1
    assert "metrics.listener=HOST:PORT" in capsys.readouterr().err
    with Cluster() as cluster:
        assert entry.run("kafka-jmx", ["--one-time", "--jmx-url", cluster.bootstrap]) == 1
    assert "does not serve beans over HTTP" in capsys.readouterr().err
