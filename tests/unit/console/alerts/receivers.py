"""A local HTTP server and a local mail server that keep what they receive."""

import json
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Receiver(ThreadingHTTPServer):
    """Responds to POST requests with `status` and `answer`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 200
        self.answer: bytes = b"{}"
        self.headers: dict[str, str] = {}
        self.received: list[tuple[str, dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def last(self) -> Any:
        """The JSON of the last request."""
        return json.loads(self.received[-1][2])


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        """Keep the request and respond to it."""
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): text for name, text in self.headers.items()}
        self.server.received.append((self.path, headers, body))
        self.send_response(self.server.status)
        for name, text in self.server.headers.items():
            self.send_header(name, text)
        self.send_header("content-length", str(len(self.server.answer)))
        self.end_headers()
        self.wfile.write(self.server.answer)

    def log_message(self, *_: Any) -> None:
        """Write no log."""


class MailServer(socketserver.ThreadingTCPServer):
    """Speaks as much SMTP as a client needs.

    With a `context` it offers STARTTLS, or encrypts from the beginning if `is_tls`.
    """

    daemon_threads = True

    def __init__(self, context: ssl.SSLContext | None = None, *, is_tls: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), _Mail)
        self.context = context
        self.is_tls = is_tls
        self.mails: list[str] = []
        self.recipients: list[str] = []
        self.refuses = False
        self.is_encrypted = False

    @property
    def port(self) -> int:
        """The port of the server."""
        return self.server_address[1]


class _Mail(socketserver.StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        """Respond to the commands of one client; a client that refuses the certificate leaves."""
        with suppress(OSError):
            if self.server.is_tls:
                self._encrypt()
            self._say("220 test")
            while line := self.rfile.readline():
                if not self._answer(line.decode().strip()):
                    return

    def _answer(self, command: str) -> bool:
        match command.split(" ")[0].upper():
            case "EHLO" if self.server.context and not self._is_encrypted:
                self._say("250-test")
                self._say("250 STARTTLS")
            case "STARTTLS" if self.server.context:
                self._say("220 go ahead")
                self._encrypt()
            case "MAIL":
                self.server.is_encrypted = self._is_encrypted
                self._say("250 ok")
            case "DATA":
                self._say("354 continue")
                lines = iter(self.rfile.readline, b".\r\n")
                self.server.mails.append(b"".join(lines).decode())
                self._say("250 stored")
            case "RCPT":
                self.server.recipients.append(command.partition("<")[2].rstrip(">"))
                self._say("550 unknown" if self.server.refuses else "250 ok")
            case "QUIT":
                self._say("221 bye")
                return False
            case _:
                self._say("250 ok")
        return True

    def finish(self) -> None:
        """Close the socket that encrypts."""
        super().finish()
        self.connection.close()

    @property
    def _is_encrypted(self) -> bool:
        return isinstance(self.connection, ssl.SSLSocket)

    def _encrypt(self) -> None:
        assert self.server.context is not None, "the server has a certificate"
        self.connection = self.server.context.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb", buffering=0)

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@contextmanager
def running(server: Any) -> Iterator[Any]:
    """Serve in a thread."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
