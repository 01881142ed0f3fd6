"""A client without a trusted certificate, whose TLS handshake fails."""

import asyncio
import json
import ssl
from pathlib import Path

import pytest

from ottla.server.node import Node
from tests.certificates import self_signed


async def test_handshake_without_a_trusted_certificate_is_a_failed_login(tmp_path: Path) -> None:
    """The address and the listener are known; the name is not."""
    server, other = self_signed(tmp_path), self_signed(tmp_path, name="other")
    file = tmp_path / "audit.log"
    node = Node(
        {
            "listeners": "SSL://127.0.0.1:0",
            "log.dirs": str(tmp_path / "data"),
            "ssl.keystore.location": str(server),
            "ssl.truststore.location": str(server.with_suffix(".crt")),
            "ssl.client.auth": "required",
            "audit.log.file": str(file),
        }
    )
    await node.start()
    try:
        for certificate in (None, other):
            context = ssl.create_default_context(cafile=str(server.with_suffix(".crt")))
            if certificate is not None:
                context.load_cert_chain(certificate)
            reader, writer = await asyncio.open_connection(node.host, node.port, ssl=context)
            # With TLS 1.3 the client learns of the refusal when it reads: by the alert.
            with pytest.raises(ssl.SSLError, match=r"alert (certificate required|unknown ca)"):
                await reader.read()
            writer.close()
    finally:
        await node.stop()
    first, second = (json.loads(line) for line in file.read_text().splitlines())
    for line in (first, second):
        assert (line["event"], line["address"], line["listener"]) == (
            "failed login",
            "127.0.0.1",
            "SSL",
        )
        assert line["details"]["mechanism"] == "certificate"
    assert first["details"]["reason"] == "PEER_DID_NOT_RETURN_A_CERTIFICATE"
