"""A local HTTP server and a local mail server that keep what they receive."""

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Receiver(ThreadingHTTPServer):
    """Answers POST requests with `status` and `answer`."""

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
        """Keep the request and answer it."""
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
    """Speaks as much SMTP as a client needs, without encryption."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Mail)
        self.mails: list[str] = []
        self.recipients: list[str] = []
        self.refuses = False

    @property
    def port(self) -> int:
        """The port of the server."""
        return self.server_address[1]


class _Mail(socketserver.StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        """Answer the commands of one client."""
        self._say("220 test")
        for line in self.rfile:
            command = line.decode().strip()
            match command.split(" ")[0].upper():
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
                    return
                case _:
                    self._say("250 ok")

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
