"""An identity provider of tests: issues tokens of OAUTHBEARER, and has its public keys."""

import base64
import functools
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from urllib.parse import parse_qs

from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

from ottla.net.tls.contexts import server_context
from ottla.net.tls.files import TlsFiles

CLIENT, SECRET, ISSUER = "ann", "s3cret", "https://login.example.org"


@functools.cache
def rsa_key(name: str) -> RSAKey:
    """Return a key with an id. A process creates it once, since that takes tenths of a second."""
    return RSAKey.generate_key(2048, {"kid": name})


class IdentityProvider:
    """A context manager; `requests` has the fields of each request for a token.

    With the file of a certificate and its key, it serves https.
    """

    def __init__(self, certificate: Path | None = None) -> None:
        self.key = rsa_key("k")
        self.requests: list[dict[str, list[str]]] = []
        self.keys_requests_count = 0
        # The response in place of a token: status and body.
        self.answer: tuple[int, bytes] | None = None
        self.life_seconds = 60
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/moved":
                    return self.respond(302, b"")
                provider.keys_requests_count += 1
                self.respond(
                    200, json.dumps(KeySet([provider.key]).as_dict(private=False)).encode()
                )

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                provider.requests.append(parse_qs(body))
                secret = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
                if provider.answer is not None:
                    self.respond(*provider.answer)
                elif self.headers["Authorization"] != f"Basic {secret}":
                    self.respond(401, b'{"error":"invalid_client"}')
                else:
                    answer = {"access_token": provider.token(), "expires_in": provider.life_seconds}
                    self.respond(200, json.dumps(answer).encode())

            def respond(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                if status == 302:
                    self.send_header("Location", provider.url + "elsewhere")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_arguments: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        scheme = "http"
        if certificate is not None:
            scheme = "https"
            context = server_context(TlsFiles(str(certificate), "", None, "none", True))
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"{scheme}://127.0.0.1:{self._server.server_port}/"

    def token(self, **claims: object) -> str:
        """Return a signed token of the client."""
        now = int(time.time())
        body = {"sub": CLIENT, "iss": ISSUER, "iat": now, "exp": now + self.life_seconds, **claims}
        return jwt.encode({"alg": "RS256", "kid": "k"}, body, self.key, algorithms=["RS256"])

    def __enter__(self) -> "IdentityProvider":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
