"""The folder of temporary files."""

from pathlib import Path

from tests.temporary import use_memory


def test_temporary_files_are_in_memory(tmp_path: Path) -> None:
    """TMPDIR names the file system in memory if it is large enough."""
    environment: dict[str, str] = {}
    use_memory(environment, tmp_path, 1)
    assert environment == {"TMPDIR": str(tmp_path)}


def test_a_small_or_missing_file_system_in_memory_is_not_used(tmp_path: Path) -> None:
    """The default folder of the machine is used instead."""
    environment: dict[str, str] = {}
    use_memory(environment, tmp_path, 1 << 62)
    use_memory(environment, tmp_path / "missing", 1)
    assert environment == {}


def test_a_chosen_folder_is_kept(tmp_path: Path) -> None:
    """The variable TMPDIR of the caller is not replaced."""
    environment = {"TMPDIR": "/chosen"}
    use_memory(environment, tmp_path, 1)
    assert environment == {"TMPDIR": "/chosen"}
