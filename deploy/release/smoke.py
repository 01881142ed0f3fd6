"""Use an installed Ottla as a new user does: broker, records, console, lesson, fixture.

Runs with the Python of a clean environment, and imports nothing but the standard library.
"""

import contextlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

_SECONDS = 120
_BIN = Path(sys.executable).parent
# A module of each extra that works only with the extra.
MODULES = {
    "arrow": "pyarrow",
    "spark": "pyspark",
    "avro": "fastavro",
    "json-schema": "jsonschema",
    "sql": "duckdb",
    "certificates": "cryptography",
    "oauth": "joserfc",
    "pkcs12": "cryptography",
    "opentelemetry": "opentelemetry.trace",
    "protobuf": "google.protobuf",
    "uvloop": "uvloop",
    "scripts": "ottla_scripts",
}
_TEST = """
def test_record(ottla_cluster):
    ottla_cluster.create_topic("t")
    ottla_cluster.produce("t", b"1")
    assert [record.value for record in ottla_cluster.records("t")] == [b"1"]
"""


def run(*words: str, text: str = "", program: str = "ottla") -> str:
    """Run an installed program; return its output."""
    return subprocess.run(
        [str(_BIN / program), *words],
        input=text,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=True,
    ).stdout


@contextlib.contextmanager
def broker(folder: str) -> Iterator[dict[str, str]]:
    """Run a broker with a console; yield the facts that it prints."""
    words = ["up", "--port", "0", "--data", folder, "--console-port", "0", "--output", "json"]
    process = subprocess.Popen(
        [str(_BIN / "ottla"), *words, "--console"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(_SECONDS)


def main(extra: str) -> None:
    """Try everything; an AssertionError or the error of a program ends it."""
    assert "site-packages" in str(importlib.import_module("ottla").__file__)
    if extra:
        importlib.import_module(MODULES[extra])
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = folder
        with broker(f"{folder}/data") as facts:
            address = ("--bootstrap", facts["bootstrap"])
            run("topic", "create", "t", *address)
            run("produce", "t", *address, text="apples\npears\n")
            assert run("consume", "t", "-e", "-q", *address) == "apples\npears\n"
            if "console" in facts:
                with urllib.request.urlopen(facts["console"].split("?")[0]) as page:
                    assert page.status == 200
            if extra == "scripts":
                names = run(
                    "--bootstrap-server", facts["bootstrap"], "--list", program="kafka-topics"
                )
                assert "t" in names.split()
        assert "acks-1" in run("learn", "--list")
        test = Path(folder) / "test_fixture.py"
        test.write_text(_TEST, "utf-8")
        run("-q", "-p", "no:cacheprovider", str(test), program="pytest")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
