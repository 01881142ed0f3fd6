"""What is known of a client that pushes metrics, by the names that subscriptions match."""

from collections.abc import Mapping

from ottla.server.context import RequestContext


def of(context: RequestContext) -> Mapping[str, str | None]:
    """Return the attributes of the client behind a request; its instance id is not among them."""
    connection = context.connection
    host, port = connection.peer_address
    name, version = connection.memo.software or (None, None)
    return {
        "client_id": context.client_id or "",
        "client_software_name": name,
        "client_software_version": version,
        "client_source_address": host,
        "client_source_port": str(port),
    }
