"""The programs that read the corpus: a console, a connection, and the command line."""

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.console.server import ConsoleServer
from ottla.operations.survey.connections import ClusterConnection
from ottla.testing import Cluster
from tests.console.session import PASSWORD, ConsoleSession, PageResponse

PARTITIONS = {"corpus-times": 2, "corpus-empty": 3, "corpus-wide": 200}


@dataclass(frozen=True)
class Setting:
    """A cluster with the corpus, and the readers that are open on it."""

    cluster: Cluster
    connection: ClusterConnection
    console: ConsoleServer
    session: ConsoleSession
    run: Callable[..., Any]

    def call(self, path: str, body: str = "") -> PageResponse:
        """Call the REST API as admin; with a body, by POST."""
        login = b64encode(f"admin:{PASSWORD}".encode()).decode()
        headers = {"authorization": f"Basic {login}", "content-type": "application/json"}
        method = "POST" if body else "GET"
        return ConsoleSession(self.console.url).request(method, path, body, headers)
