"""The tests of a module are found from its name: in tests/unit or tests/integration, or in a table.

Both trees mirror `ottla`: the tests of `ottla/a/b/c.py` are in `tests/unit/a/b/test_c.py` or
`tests/unit/a/test_b_c.py`, and those that need a broker or a process in the file of this name below
tests/integration. The package `ottla_scripts` is mirrored by the folder `scripts` of both. The
tests of a handler are in tests/handlers, and tests/wire covers the messages.
tests/law/tests_of_packages.toml lists for each package the tests of its other modules.
"""

import functools
import tomllib
from pathlib import PurePosixPath

from tests.law import source

_TREES = ("tests/unit", "tests/integration")


@functools.cache
def _table() -> dict[str, list[str]]:
    with (source.ROOT / "tests/law/tests_of_packages.toml").open("rb") as file:
        table: dict[str, list[str]] = tomllib.load(file)["tests"]
    return table


def _has_mirror(path: PurePosixPath) -> bool:
    is_script = path.parts[0] == source.SCRIPTS
    folders = (*(("scripts",) if is_script else ()), *path.parent.parts[1:])
    if path.parts[1:3] == ("wire", "messages"):
        return True
    if path.parts[1:3] == ("server", "handlers"):
        return (source.ROOT / "tests/handlers" / f"test_{path.stem}.py").exists()
    names = (
        source.ROOT.joinpath(tree, *folders[:depth], f"test_{'_'.join(rest)}.py")
        for tree in _TREES
        for depth in range(1, len(folders) + 1)
        for rest in ((path.stem,), (*folders[depth:], path.stem))
    )
    return any(name.exists() for name in names)


def _packages_with_other_modules() -> set[str]:
    paths = [PurePosixPath(item.path) for item in source.sources()]
    return {
        "/".join(path.parent.parts)
        for path in paths
        if not path.stem.startswith("__")
        and (len(path.parts) > 2 or path.parts[0] == source.SCRIPTS)
        and not _has_mirror(path)
    }


def test_tests_of_every_module_are_found_from_its_name() -> None:
    """A package has a row if one of its modules has no test file of the same name."""
    assert _packages_with_other_modules() == set(_table())


def test_the_table_of_tests_names_tests_that_exist() -> None:
    """Each row has a file, or a folder that contains tests."""
    for package, locations in _table().items():
        assert locations, package
        for location in locations:
            path = source.ROOT / location
            assert path.is_file() or list(path.rglob("test_*.py")), f"{package}: {location}"
