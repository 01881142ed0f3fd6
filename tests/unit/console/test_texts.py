"""The texts of the console: every one has a Chinese translation with the same values."""

import ast
import re
from pathlib import Path

import pytest

import ottla.console
from ottla.console.accounts.roles import Role
from ottla.console.alerts.rules import KINDS, Severity
from ottla.console.pages import history, start
from ottla.console.pages.access.quotas import LIMITS
from ottla.console.texts.catalogue import language, preferred
from ottla.console.web.layout import SECTIONS

FOLDER = Path(ottla.console.__file__).parent
_IN_TEMPLATE = re.compile(r"\b_\(([\"'])(.*?)\1[,)]")
_VALUES = re.compile(r"{(\w+)}")


def texts() -> set[str]:
    """Return the texts of templates and modules, and those that are computed."""
    labels = {entry.label for entry in SECTIONS} | set(start._PAGES) | set(LIMITS)
    labels |= {role.label for role in Role} | {severity.value for severity in Severity}
    labels |= {facts.label for facts in KINDS.values()} | set(start._GLOBAL_PAGES)
    labels |= {facts.unit for facts in KINDS.values() if facts.unit}
    labels |= set(history.PERIOD_LABELS.values())
    labels |= {label for lines in history.CHARTS.values() for label in lines if label[-2:] != "/s"}
    for path in FOLDER.glob("templates/*.html"):
        labels |= {text for _, text in _IN_TEMPLATE.findall(path.read_text("utf-8"))}
    for path in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func)
            if name.endswith(".say") or name in ("say", "Refused"):
                labels |= {
                    item.value
                    for item in node.args
                    if isinstance(item, ast.Constant) and isinstance(item.value, str)
                }
    return labels


def test_every_text_has_a_translation_with_the_same_values() -> None:
    """A new text in English fails this test until it is in zh.toml."""
    chinese = language("zh").texts
    assert len(texts()) > 400
    assert sorted(texts() - set(chinese)) == []
    differing = [
        text
        for text, translation in chinese.items()
        if set(_VALUES.findall(text)) != set(_VALUES.findall(translation))
    ]
    assert differing == []


@pytest.mark.parametrize(
    ("header", "code"),
    [("", "en"), ("zh-CN,zh;q=0.9,en;q=0.8", "zh"), ("de,en;q=0.5", "en"), ("fr;q=1", "en")],
)
def test_the_browser_chooses_the_language(header: str, code: str) -> None:
    """The first known language of Accept-Language is used."""
    assert preferred(header) == code


def test_an_unknown_language_and_an_unknown_text_are_english() -> None:
    """A cookie may have any value."""
    assert language("../../etc/passwd").code == "en"
    assert language("zh").say("no such text {x}", x=1) == "no such text 1"
