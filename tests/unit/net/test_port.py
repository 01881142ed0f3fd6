"""What to do if a listener cannot be opened."""

import errno
import socket

import pytest

from ottla.net import port


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (OSError(errno.EADDRINUSE, ""), "Stop the process that uses it, or choose another port"),
        (OSError(errno.EADDRNOTAVAIL, ""), "Use an address of this machine, or 0.0.0.0 for all"),
        (socket.gaierror(socket.EAI_AGAIN, ""), "Use an address of this machine"),
        (PermissionError(errno.EACCES, ""), "This user may not use a port that low: choose an"),
    ],
)
def test_remedy_depends_on_the_reason(error: OSError, remedy: str) -> None:
    """Another port does not help if the address is that of another machine."""
    assert port.remedy(error, "choose another port").startswith(remedy)
