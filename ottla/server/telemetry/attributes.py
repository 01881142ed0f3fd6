"""The attributes of a client that pushes metrics, by the names that subscriptions match (KIP-714)."""

from collections.abc import Mapping

from ottla.net.connection import Connection


def of(connection: Connection, client_id: str | None) -> Mapping[str, str | None]:
    """Return the attributes of a client, without its instance id."""
    host, port = connection.peer_address
    name, version = connection.memo.software or (None, None)
    return {
        "client_id": client_id or "",
        "client_software_name": name,
        "client_software_version": version,
        "client_source_address": host,
        "client_source_port": str(port),
    }
