"""Files and values that a script without a cluster cannot use: a sentence, the exit code 1."""

import io
from pathlib import Path

import pytest

from ottla.base.errors import ConfigError
from ottla.client.raw.consumer import ConsumedRecord
from ottla.tools.text_files import read_json, read_text
from ottla.tools.zookeeper import shell
from ottla_scripts import entry
from ottla_scripts.console.formatter import DefaultFormatter
from ottla_scripts.console.java_lines import java_lines
from ottla_scripts.console.line_reader import LineError, LineReader

pytestmark = pytest.mark.slow

_LATIN = b"\xfcber\n"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("trogdor", ["check"]),
        ("kafka-server-start", []),
        ("connect-standalone", ["worker.properties"]),
        ("kafka-mirror-maker", ["--include", "o", "--producer.config", "worker.properties",
                                "--consumer.config"]),
    ],
)  # fmt: skip
def test_file_of_a_script_without_brokers_that_is_not_utf8(
    name: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """The script fails before it starts or writes anything."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JMX_PORT", "1")
    Path("worker.properties").write_text("bootstrap.servers=127.0.0.1:1\n")
    Path("latin").write_bytes(_LATIN)
    assert entry.run(name, [*words, "latin"]) == 1
    assert "byte 0xfc is not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["[]", "5", '{"config": []}', "[" * 100_000])
def test_connector_that_is_not_a_json_object(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Connect's form is shown, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    Path("worker.properties").write_text("bootstrap.servers=127.0.0.1:1\n")
    Path("source.json").write_text(content)
    assert entry.run("connect-standalone", ["worker.properties", "source.json"]) == 1
    assert "source.json is not a connector in JSON" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.yaml"))


def test_json_that_is_nested_too_deeply(tmp_path: Path) -> None:
    """It is no valid JSON for the tools."""
    file = tmp_path / "deep.json"
    file.write_text('{"partitions":' + "[" * 100_000)
    with pytest.raises(ConfigError, match="not a valid JSON"):
        read_json(str(file))


def test_text_has_the_ends_of_lines_of_python(tmp_path: Path) -> None:
    """Files of Windows are read like files of Unix."""
    file = tmp_path / "text"
    file.write_bytes(b"a\r\nb\rc\n")
    assert read_text(file) == "a\nb\nc\n"


@pytest.mark.parametrize("data", [b"no uuid", b"\xff\xfe"])
def test_bytes_that_are_no_uuid(data: bytes) -> None:
    """UUIDDeserializer fails as the other deserializers do, so that a record can be skipped."""
    show = DefaultFormatter({"value.deserializer": "UUIDDeserializer"}).format
    record = ConsumedRecord("o", 0, 0, 0, "create", None, data, ())
    with pytest.raises(ConfigError, match="Error parsing data into UUID"):
        show(record)


@pytest.mark.parametrize("host", ["a..b", "a" * 64])
def test_zookeeper_whose_host_is_no_name(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence shows the form, at once and without a traceback of a thread."""
    assert entry.run("zookeeper-shell", [f"{host}:2181", "ls", "/"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"'{host}:2181' is not of the form HOST:PORT[,HOST:PORT…][/PATH]\n"


def test_interrupted_zookeeper_shell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C while it connects ends the script as it ends a shell's command."""

    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shell, "_Shell", interrupt)
    monkeypatch.setattr(shell.nodes, "parse", interrupt)
    assert entry.run("zookeeper-shell", ["127.0.0.1:1", "ls", "/"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_bytes_that_are_not_utf8_become_replacement_characters() -> None:
    """Java decodes standard input so; librdkafka's binding cannot send other names of headers."""
    (line,) = java_lines(io.BytesIO(b"na\xffme:v\xff\tvalue\xed\xa0\x80"))
    record = LineReader({"parse.headers": "true"}).read(line)
    assert record.headers == [("na\ufffdme", "v\ufffd".encode())]
    assert record.value == "value\ufffd".encode()


def test_separator_of_headers_that_is_no_regular_expression() -> None:
    """Java compiles it, too; the sentence has the reason."""
    with pytest.raises(LineError, match="not a valid regular expression: nothing to repeat"):
        LineReader({"headers.separator": "*"})


def test_carriage_return_ends_a_line_also_between_two_reads() -> None:
    """The line is returned before the next bytes arrive, and a line feed behind it is skipped."""
    chunks = [b"a\r", b"\n", b"b", b"c\r", b"\r\n", b"\nd"]
    waiting = list(chunks)

    class Parts:
        def read1(self, size: int, /) -> bytes:
            return waiting.pop(0) if waiting else b""

    lines = java_lines(Parts())
    assert next(lines) == "a"
    assert waiting == chunks[1:]
    assert list(lines) == ["bc", "", "", "d"]
