"""The kinds of mounted file systems."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from ottla.base.platform import IS_LINUX

_MOUNTS = "/proc/mounts"
# A line of mount(8) on macOS and FreeBSD: `/dev/disk3s5 on /Volumes/Data (apfs, local, …)`.
# OpenBSD and NetBSD write `/dev/sd0a on / type ffs (local)`.
_LINE = re.compile(r"^.* on (?P<point>/.*?)(?: type (?P<kind>\S+))? \((?P<options>[^()]*)\)$")
_SECONDS_MAX = 10


def kind_of_mount(folder: Path) -> str:
    """Return the kind of the file system that contains a folder; an empty string if unknown."""
    best, kind = -1, ""
    for point, mount_kind in mounts_of_linux() if IS_LINUX else mounts_of_others():
        if len(point) > best and folder.absolute().is_relative_to(point):
            best, kind = len(point), mount_kind
    return kind


def mounts_of_linux() -> Iterator[tuple[str, str]]:
    """Yield the point and the kind of each mount, as Linux reports them."""
    try:
        text = Path(_MOUNTS).read_text("utf-8", "replace")
    except OSError:
        return
    for line in text.splitlines():
        _, point, kind, *_ = line.split(" ")
        yield point.encode().decode("unicode_escape"), kind


def mounts_of_others() -> Iterator[tuple[str, str]]:
    """Yield the point and the kind of each mount, as mount(8) reports them."""
    try:
        output = subprocess.run(
            ["mount"],  # noqa: S607 - the system's own
            capture_output=True,
            timeout=_SECONDS_MAX,
            check=False,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return
    yield from parse_mounts(output.decode("utf-8", "replace"))


def parse_mounts(text: str) -> Iterator[tuple[str, str]]:
    """Yield the point and the kind of each mount in the output of mount(8)."""
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is not None:
            yield match["point"], match["kind"] or match["options"].partition(",")[0].strip()
