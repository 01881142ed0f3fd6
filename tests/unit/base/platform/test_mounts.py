"""The kinds of mounted file systems."""

import sys
from pathlib import Path

import pytest

from ottla.base.platform import mounts

ONLY_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="Linux's own calls")


def test_mounts_of_other_systems_are_parsed() -> None:
    """FreeBSD and macOS write the kind in parentheses, OpenBSD and NetBSD write `type`."""
    text = (
        "/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)\n"
        "/dev/disk4s1 on /Volumes/My Disk (exfat, local, nodev)\n"
        "//me@nas/share on /Volumes/share (smbfs, nodev)\n"
        "zroot/home on /usr/home (zfs, local)\n"
        "/dev/sd0a on /var type ffs (local, nodev)\n"
        "no mount\n"
    )
    assert list(mounts.parse_mounts(text)) == [
        ("/", "apfs"),
        ("/Volumes/My Disk", "exfat"),
        ("/Volumes/share", "smbfs"),
        ("/usr/home", "zfs"),
        ("/var", "ffs"),
    ]


@ONLY_LINUX
def test_mount_reports_the_same_kind_as_proc(tmp_path: Path) -> None:
    """The longest point that contains the folder counts."""
    assert mounts.kind_of_mount(tmp_path) in {kind for _, kind in mounts.mounts_of_linux()}
    assert dict(mounts.mounts_of_others()).items() <= set(mounts.mounts_of_linux())
