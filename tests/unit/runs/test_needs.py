"""Tests of missing tools are skipped, or fail, from one place."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest.outcomes import Failed, Skipped

from tests.runs import needs

ROOT = Path(__file__).parents[3]


def _item(*tools: str) -> Any:
    """Return a test with a marker for these tools."""
    marker = pytest.mark.needs(*tools).mark
    return SimpleNamespace(nodeid="tests/a.py::test_one", iter_markers=lambda name: [marker])


@pytest.fixture(autouse=True)
def _no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(needs.REQUIRED, raising=False)


@pytest.fixture
def _no_programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)


@pytest.mark.usefixtures("_no_programs")
@pytest.mark.parametrize("name", needs.TOOLS)
def test_a_test_without_its_tool_is_skipped_with_the_command_that_installs_it(name: str) -> None:
    """The reason is the same for each test, so that the summary has one line for each tool."""
    with pytest.raises(Skipped) as skipped:
        needs.require_tools(_item(name))
    assert str(skipped.value).endswith(f": {needs.TOOLS[name].install}")


@pytest.mark.usefixtures("_no_programs")
def test_a_listed_tool_that_is_missing_fails_its_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """OTTLA_TESTS_NEED has names with commas; the tests of other tools are still skipped."""
    monkeypatch.setenv(needs.REQUIRED, "strace, chromium")
    for name in ("strace", "chromium"):
        with pytest.raises(Failed, match=f"{needs.REQUIRED} has '{name}', but {name} is not inst"):
            needs.require_tools(_item(name))
    with pytest.raises(Skipped):
        needs.require_tools(_item("kcat"))


def test_a_test_with_its_tools_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every program of a tool must be on the PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for program in ("java", "javac", "mvn"):
        with pytest.raises(Skipped, match=f"{program} is not installed"):
            needs.require_tools(_item("java"))
        (tmp_path / program).touch(0o755)
    needs.require_tools(_item("java"))


def test_a_tool_that_is_not_permitted_has_one_reason_for_all_tests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Paths and process ids in the error differ; such a test fails if its tool is listed."""
    reasons = set()
    for folder in ("/tmp/one", "/tmp/two"):
        with pytest.raises(Skipped) as skipped:
            needs.not_permitted("mount", f"mount: {folder}: must be superuser to use mount.\n")
        reasons.add(str(skipped.value))
    (reason,) = reasons
    assert reason.startswith("mount is not permitted here (must be superuser to use mount.): run")
    monkeypatch.setenv(needs.REQUIRED, "mount")
    with pytest.raises(Failed, match="mount is not permitted here"):
        needs.not_permitted("mount", "denied")


def test_names_that_no_tool_has_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelt tool would otherwise never be missing; a marker without a name says nothing."""
    needs.check_tools([_item("java", "kcat")])
    for item, sentence in (
        (_item("kcta"), "tests/a.py::test_one: 'kcta' is no tool"),
        (_item(), r"tests/a.py::test_one: name a tool: `needs\(\"kcat\"\)`"),
    ):
        with pytest.raises(pytest.UsageError, match=sentence):
            needs.check_tools([item])
    monkeypatch.setenv(needs.REQUIRED, "strace,chrome")
    with pytest.raises(pytest.UsageError, match="OTTLA_TESTS_NEED: 'chrome' is no tool\nThe tools"):
        needs.check_tools([])


def test_the_documentation_has_every_tool_with_its_command() -> None:
    """The table of docs/testing.md agrees with the code."""
    page = (ROOT / "docs/testing.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    missing = [
        name
        for name, tool in needs.TOOLS.items()
        if not any(row.startswith(f"| `{name}` | `{tool.install}` |") for row in rows)
    ]
    assert missing == []
