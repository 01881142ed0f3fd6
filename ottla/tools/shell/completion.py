"""`ottla completion SHELL`: print the script that teaches a shell to complete `ottla`."""

import click
from click.shell_completion import get_completion_class

from ottla.tools import options
from ottla.tools.output import Output

_SHELLS = ("bash", "fish", "zsh")


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
@options.formatted
@click.pass_context
def command(context: click.Context, output: Output, shell: str) -> None:
    """Print a shell's completion script.

    \b
    bash, in ~/.bashrc:                    eval "$(ottla completion bash)"
    zsh, in ~/.zshrc, after compinit:      eval "$(ottla completion zsh)"
    fish, in ~/.config/fish/config.fish:   ottla completion fish | source
    """
    kind = get_completion_class(shell)
    assert kind is not None
    root = context.find_root().command
    script = kind(root, {}, "ottla", "_OTTLA_COMPLETE").source()
    output.done(script, shell=shell, script=script)
