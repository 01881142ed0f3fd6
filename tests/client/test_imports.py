"""Importing the client is cheap, and every public name can be imported."""

import subprocess
import sys

import pytest

import ottla.client


def test_import_loads_neither_librdkafka_nor_arrow() -> None:
    """Names are imported on first use, and one name does not import the rest."""
    script = (
        "import sys, ottla.client\n"
        "heavy = {'confluent_kafka', 'pyarrow', 'opentelemetry', 'numpy'}\n"
        "assert not heavy & sys.modules.keys()\n"
        "ottla.client.Serdes, ottla.client.TopicPartition\n"
        "assert not heavy & sys.modules.keys()\n"
        "ottla.client.Producer, ottla.client.Consumer\n"
        "assert heavy & sys.modules.keys() == {'confluent_kafka'}\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_public_name_exists() -> None:
    """`__all__` has the names that the package imports on first use."""
    for name in ottla.client.__all__:
        assert getattr(ottla.client, name).__name__ == name
    assert sorted(ottla.client.__all__) == sorted(ottla.client._MODULES)


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pyarrow, the error has the command that installs it."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "ottla.client.arrow_table", raising=False)
    with pytest.raises(
        ImportError, match=r"read_table needs pyarrow: pip install 'ottla\[arrow\]'"
    ):
        _ = ottla.client.read_table
