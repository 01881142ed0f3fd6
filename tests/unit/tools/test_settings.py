"""The settings of `ottla up`: options, files and defaults."""

import pytest

from ottla.base.errors import ConfigError
from ottla.client.config.properties import parse_properties, write_properties
from ottla.cluster.options.option_tables import unknown_names
from ottla.tools.broker.settings import UpOptions, broker_settings, cluster_settings


def _settings(**fields: object) -> dict[str, str]:
    return broker_settings(UpOptions(**{"options": {}, "file": {}, **fields}))  # type: ignore[arg-type]


def test_default_broker_serves_only_this_machine() -> None:
    """The broker listens on Kafka's port on loopback, with data below the current directory."""
    assert _settings() == {
        "listeners": "PLAINTEXT://127.0.0.1:9092",
        "log.dirs": "./ottla-data",
    }


def test_more_specific_setting_applies() -> None:
    """The precedence is --port, --option, the file, the default."""
    file = {"listeners": "PLAINTEXT://a:1", "num.partitions": "2", "log.dirs": "/f"}
    assert _settings(file=file) == file
    assert _settings(file=file, options={"num.partitions": "3"})["num.partitions"] == "3"
    assert _settings(file=file, port=5)["listeners"] == "PLAINTEXT://127.0.0.1:5"
    assert _settings(file=file, host="::1", port=0)["listeners"] == "PLAINTEXT://[::1]:0"
    assert _settings(file=file, data="/d")["log.dirs"] == "/d"
    assert "log.dirs" not in _settings(file={"log.dir": "/f"})


def test_mistyped_option_is_an_error_with_a_suggestion() -> None:
    """A broker ignores unknown names, but the command reports them."""
    with pytest.raises(ConfigError, match=r"no broker option num\.partition: did you mean num\.p"):
        _settings(options={"num.partition": "3"})
    with pytest.raises(ConfigError, match=r"see docs/options\.md for all of them"):
        _settings(options={"qqq": "3"})


@pytest.mark.parametrize(
    ("fields", "options", "error"),
    [
        ({"port": 5}, {"listeners": "PLAINTEXT://a:1"}, r"--port and -o listeners=PLAINTEXT://a:1"),
        ({"host": "::1"}, {"listeners": "PLAINTEXT://a:1"}, r"--host and -o listeners="),
        ({"data": "/d"}, {"log.dirs": "/e,/f"}, r"--data and -o log\.dirs=/e,/f"),
        ({"data": "/d"}, {"log.dir": "/e"}, r"--data and -o log\.dir=/e"),
        ({"metrics_port": 0}, {"metrics.listener": "a:1"}, r"--metrics-port and -o metrics\.l"),
    ],
)
def test_conflicting_options_are_rejected(
    fields: dict[str, object], options: dict[str, str], error: str
) -> None:
    """A short option and `-o` for the same setting contradict each other; the error names both."""
    with pytest.raises(ConfigError, match=error + r".*: omit one of them"):
        _settings(options=options, **fields)


def test_a_log_directory_of_the_command_line_replaces_those_of_the_file() -> None:
    """`log.dirs` has precedence over `log.dir`, but not over a `log.dir` of the command line."""
    settings = _settings(file={"log.dirs": "/f,/g"}, options={"log.dir": "/o"})
    assert "log.dirs" not in settings
    assert settings["log.dir"] == "/o"


def test_unknown_names_in_a_file_are_listed() -> None:
    """Each is listed with the most similar known name."""
    assert unknown_names({"num.partition": "3", "num.io.threads": "8", "qqq": "1"}) == [
        "Unknown configuration num.partition is ignored; did you mean num.partitions?",
        "Unknown configuration qqq is ignored",
    ]


def test_file_can_have_options_of_plug_ins() -> None:
    """The broker warns and starts, as with Kafka."""
    assert _settings(file={"my.plug.in": "x"})["my.plug.in"] == "x"


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("a=1\nb = 2\n", {"a": "1", "b": "2"}),
        ("# comment\n! comment\n\n  a=1  \n", {"a": "1"}),
        ("a:1\nb 2", {"a": "1", "b": "2"}),
        ("a=1,\\\n   2,\\\n   3\nb=4", {"a": "1,2,3", "b": "4"}),
        ("a=C:\\\\data", {"a": "C:\\data"}),
        ("a=x\\u00e4", {"a": "xä"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=", {"a": ""}),
        ("a=b=c", {"a": "b=c"}),
        ("a=1\\", {"a": "1"}),
        ("", {}),
    ],
)
def test_files_are_parsed_like_in_java(text: str, settings: dict[str, str]) -> None:
    """Comments, continuation lines and escapes are supported; the last value of a key applies."""
    assert parse_properties(text, "f") == settings


def test_values_may_end_with_spaces() -> None:
    """A separator such as "= " is one; without the argument, the spaces are removed."""
    text = "a = b \n  \nc==\t\nd=e\\\n  f \n"
    kept = {"a": "b ", "c": "=\t", "d": "ef "}
    assert parse_properties(text, "f", keeps_spaces=True) == kept
    assert parse_properties(text, "f") == {name: value.rstrip() for name, value in kept.items()}


def test_line_without_a_setting_is_reported() -> None:
    """The error has the file and the line number."""
    with pytest.raises(ConfigError, match=r"f\.properties, line 2: 'word' is not of the form"):
        parse_properties("a=1\nword\n", "f.properties")


def _cluster(count: int, **fields: object) -> list[dict[str, str]]:
    return cluster_settings(UpOptions(**{"options": {}, "file": {}, **fields}), count)  # type: ignore[arg-type]


def test_each_broker_of_a_cluster_has_its_own_id_port_and_folder() -> None:
    """Ids from 1, consecutive ports, and folders below the data."""
    first, second = _cluster(2, data="/d", options={"num.partitions": "3"})
    assert first == {
        "num.partitions": "3",
        "node.id": "1",
        "listeners": "PLAINTEXT://127.0.0.1:9092",
        "log.dirs": "/d/broker1",
    }
    assert (second["node.id"], second["listeners"]) == ("2", "PLAINTEXT://127.0.0.1:9093")
    assert second["log.dirs"] == "/d/broker2"


def test_port_0_is_a_free_port_for_each_broker() -> None:
    """With port 0 every broker has port 0, not 0, 1, 2."""
    listeners = [row["listeners"] for row in _cluster(3, port=0, host="::1")]
    assert listeners == ["PLAINTEXT://[::1]:0"] * 3
    metrics = [row["metrics.listener"] for row in _cluster(2, metrics_port=9100)]
    assert metrics == ["127.0.0.1:9100", "127.0.0.1:9101"]


@pytest.mark.parametrize("name", ["node.id", "broker.id", "listeners", "log.dirs"])
def test_identity_of_one_broker_cannot_be_that_of_all(name: str) -> None:
    """Neither in an option nor in the file."""
    for parameter in ("options", "file"):
        with pytest.raises(ConfigError, match=rf"{name} cannot be set with --brokers"):
            _cluster(2, **{parameter: {name: "1"}})


def test_written_properties_are_read_back() -> None:
    """Backslashes, line ends and separators survive."""
    settings = {"a": "x=y: z", "b": "C:\\temp\\n", "c": "two\nlines\tand a tab", "d": ""}
    assert parse_properties(write_properties(settings), "file") == settings


def test_each_broker_of_a_cluster_has_its_own_audit_file() -> None:
    """They would rename the files of each other."""
    settings = {"audit.log.file": "/var/log/ottla/audit.log"}
    files = [row["audit.log.file"] for row in _cluster(2, options=settings)]
    assert files == ["/var/log/ottla/audit-1.log", "/var/log/ottla/audit-2.log"]
    assert "audit.log.file" not in _cluster(2)[0]
