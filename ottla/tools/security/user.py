"""`ottla security user`: the SCRAM credentials of users."""

import sys

import click

from ottla.base.errors import ConfigError
from ottla.client.admin import scram
from ottla.client.admin.scram import ScramDeletion, ScramMechanism, ScramUpsertion
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.output import Output

_NAMES = [mechanism.mechanism_name for mechanism in ScramMechanism]
_COLUMNS = ("user", "mechanism", "iterations")
_LENGTH_MAX = 4096


@click.command("user")
@click.argument("name", required=False)
@click.option("--mechanism", type=click.Choice(_NAMES), default="SCRAM-SHA-512", show_default=True,
              help="The mechanism of the credential.")  # fmt: skip
@click.option("--iterations", type=click.IntRange(scram.ITERATIONS_MIN, scram.ITERATIONS_MAX),
              default=scram.ITERATIONS_MIN, show_default=True,
              help="How often the password is hashed.")  # fmt: skip
@click.option("--delete", "is_deletion", is_flag=True, help="Delete the credential.")
@options.connected
def command(
    brokers: Brokers,
    output: Output,
    name: str | None,
    mechanism: str,
    iterations: int,
    is_deletion: bool,
) -> None:
    """Set the password of the user NAME, for clusters with SCRAM; list the users without NAME.

    The password is typed, or read from the first line of standard input. The cluster receives a
    salted hash of it.

    \b
    ottla security user anna
    ottla security user anna < password.txt
    ottla security user anna --delete
    """
    chosen = scram.mechanism_of(mechanism)
    if name is None:
        if is_deletion:
            raise click.UsageError("Name the user whose credential is to be deleted.")
        _list(brokers, output)
    elif is_deletion:
        scram.alter_user_scram_credentials(brokers, deletions=[ScramDeletion(name, chosen)])
        output.done(f"Deleted the {mechanism} credential of {name}.", user=name, deleted=True)
    else:
        row = ScramUpsertion(name, chosen, _password(name), iterations)
        scram.alter_user_scram_credentials(brokers, [row])
        output.done(f"Set the {mechanism} password of {name}.", user=name, mechanism=mechanism)


def _list(brokers: Brokers, output: Output) -> None:
    users = scram.describe_user_scram_credentials(brokers)
    rows = [
        {
            "user": user,
            "mechanism": credential.mechanism.mechanism_name,
            "iterations": credential.iterations,
        }
        for user, credentials in users.items()
        for credential in credentials
    ]
    output.rows(rows, _COLUMNS, empty="No user has a SCRAM credential.")


def _password(name: str) -> str:
    """Return the password; ConfigError if it is empty. It is never on the command line."""
    if sys.stdin.isatty():
        text = str(click.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True))
    else:
        text = sys.stdin.readline(_LENGTH_MAX).rstrip("\r\n")
    if not text:
        raise ConfigError("the password is empty: type it, or write it to standard input")
    return text
