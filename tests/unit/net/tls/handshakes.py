"""Handshakes of TLS in memory."""

import ssl


def shake(server: ssl.SSLContext, client: ssl.SSLContext, host: str = "127.0.0.1") -> str | None:
    """Return the version that server and client agree on; ssl.SSLError if they do not agree."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    at_server = server.wrap_bio(to_server, to_client, server_side=True)
    at_client = client.wrap_bio(to_client, to_server, server_hostname=host)
    waiting = [at_client, at_server]
    for _ in range(10):
        for side in list(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                continue
        if not waiting:
            return at_client.version()
    raise AssertionError("the handshake does not end")
