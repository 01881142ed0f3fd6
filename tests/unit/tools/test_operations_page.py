"""docs/operations.md: each alert has a section, and the commands in it exist."""

import re
import shlex
from pathlib import Path

import click
import pytest

from ottla.tools.generate import alert_rules
from ottla.tools.generate.alert_rules import AlertThresholds
from ottla.tools.main import root

PAGE = (Path(__file__).parents[3] / "docs/operations.md").read_text()
COMMANDS = sorted(
    {
        text.split("#")[0].strip()
        for text in re.findall(r"`(ottla [a-z][^`]*)`", PAGE) + re.findall(r"^ottla .*", PAGE, re.M)
    }
)


def test_every_alert_has_a_section_with_what_to_do() -> None:
    """The sections are the alerts in their order; each says where to look and what to do."""
    sections = re.split(r"^### ", PAGE.split("## Alerts")[1], flags=re.M)[1:]
    names = [section.split("\n")[0] for section in sections]
    assert names == [rule.name for rule in alert_rules.rules(AlertThresholds())]
    for section in sections:
        assert "\n* Look: " in section
        assert "\n* Do: " in section


@pytest.mark.parametrize("text", COMMANDS)
def test_every_command_and_option_of_the_page_exists(text: str) -> None:
    """A person on call copies them."""
    command: click.Command = root
    words = shlex.split(text)[1:]
    context = click.Context(root)
    while isinstance(command, click.Group):
        assert words, f"{text} is a group of commands"
        found = command.get_command(context, words.pop(0))
        assert found is not None, text
        command = found
    known = {name for item in command.params for name in (*item.opts, *item.secondary_opts)}
    assert {word for word in words if re.match(r"--?[a-z]", word)} <= known
