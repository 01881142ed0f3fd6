"""`ottla completion SHELL`: print the script that teaches a shell to complete `ottla`."""

import click
from click.shell_completion import get_completion_class

_SHELLS = ("bash", "fish", "zsh")


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print a shell's completion script.

    \b
    bash, in ~/.bashrc:                    eval "$(ottla completion bash)"
    zsh, in ~/.zshrc:                      eval "$(ottla completion zsh)"
    fish, in ~/.config/fish/config.fish:   ottla completion fish | source
    """
    kind = get_completion_class(shell)
    assert kind is not None
    root = context.find_root().command
    click.echo(kind(root, {}, "ottla", "_OTTLA_COMPLETE").source())
