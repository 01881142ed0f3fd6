"""Operations on stream applications."""

from ottla.console.accounts.roles import Role
from ottla.console.api.operations import CLUSTER_PATH, Operation
from ottla.console.streams.applications import (
    delete_topology,
    describe_application,
    list_applications,
    upload_topology,
)

_STREAMS = f"{CLUSTER_PATH}/streams"
_APPLICATION = f"{_STREAMS}/{{application}}"
_TOPOLOGY = f"{_APPLICATION}/topology"
_TAG = "streams"

OPERATIONS = (
    Operation("GET", _STREAMS, Role.VIEWER, list_applications, _TAG),
    Operation("GET", _APPLICATION, Role.VIEWER, describe_application, _TAG),
    Operation("PUT", _TOPOLOGY, Role.EDITOR, upload_topology, _TAG),
    Operation("DELETE", _TOPOLOGY, Role.EDITOR, delete_topology, _TAG),
)
