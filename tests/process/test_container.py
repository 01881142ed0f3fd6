"""The command and the health check of the image, run without a container."""

import json
import os
import re
import socket
import subprocess
import sys
from contextlib import ExitStack

import pytest
import yaml

from ottla.testing.process import COMMAND
from ottla.tools.main import root
from tests.law import source

pytestmark = pytest.mark.slow

_DEPLOY = source.ROOT / "deploy"
_PORTS = ("29092", "9092", "9644")


def _instructions() -> dict[str, str]:
    """Return the last instruction of each kind in the image's file, on one line."""
    lines = (_DEPLOY / "Containerfile").read_text("utf-8").replace("\\\n", " ").splitlines()
    return dict(line.split(" ", 1) for line in lines if line and not line.startswith("#"))


def _free_ports() -> list[str]:
    with ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in _PORTS]
        return [str(listener.getsockname()[1]) for listener in listeners]


def test_the_image_starts_a_healthy_broker_for_the_machine_and_for_containers(tmp_path) -> None:
    """Each listener advertises its own host, by the variables of the environment."""
    found = _instructions()
    ports = dict(zip(_PORTS, _free_ports(), strict=True))

    def words(text: str) -> list[str]:
        text = re.sub("|".join(_PORTS), lambda match: ports[match[0]], text)
        return json.loads(text.replace("/data", str(tmp_path / "data")))

    environment = {**os.environ, "OTTLA_ADVERTISED": "localhost", "HOSTNAME": "127.0.0.1"}
    process = subprocess.Popen(
        [*COMMAND, *words(found["CMD"])], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stdout is not None
        assert "Ottla is ready" in process.stdout.readline()
        for host, port in (("localhost", "9092"), ("127.0.0.1", "29092")):
            listed = subprocess.run(
                [*COMMAND, "cluster", "info", "--bootstrap", f"127.0.0.1:{ports[port]}"],
                capture_output=True, text=True, timeout=30, check=False,
            )  # fmt: skip
            assert f"{host}:{ports[port]}" in listed.stdout, listed.stderr
        check = words(found["HEALTHCHECK"].partition("CMD ")[2])
        subprocess.run([sys.executable, *check[1:]], timeout=30, check=True)
    finally:
        process.kill()
        process.communicate(timeout=20)


def test_the_image_runs_as_a_user_without_rights() -> None:
    """Its file names a user, a volume and a health check."""
    found = _instructions()
    assert (found["USER"], found["VOLUME"]) == ("ottla", "/data")
    assert found["ENTRYPOINT"] == '["ottla"]'


def test_services_of_compose_have_commands_that_exist() -> None:
    """The console reaches the broker by the listener for containers."""
    services = yaml.safe_load((_DEPLOY / "compose.yaml").read_text("utf-8"))["services"]
    command = services["console"]["command"]
    assert command[0] in root.verbs
    assert "local=ottla:29092" in command
    assert services["ottla"]["hostname"] == "ottla"
    assert {"ottla", "console", "prometheus"} == set(services)
