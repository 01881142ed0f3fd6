"""`ottla security user`: the SCRAM credentials of users, and the users of PLAIN in a file."""

import secrets
import sys
from pathlib import Path

import click

from ottla.base.errors import ConfigError
from ottla.client.admin import scram
from ottla.client.admin.scram import ScramDeletion, ScramMechanism, ScramUpsertion
from ottla.client.brokers import Brokers
from ottla.client.security.private_files import write_private
from ottla.operations.access.changes import delete_credential, set_password
from ottla.security.scram import (
    SALT_BYTES,
    USERS_MECHANISM,
    credential_of_password,
    users_of,
    users_text,
)
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
@click.option("--file", "path", type=click.Path(dir_okay=False),
              help="Change this file of sasl.plain.users.file, and not the cluster.")  # fmt: skip
@options.connected
def command(
    brokers: Brokers,
    output: Output,
    name: str | None,
    mechanism: str,
    iterations: int,
    is_deletion: bool,
    path: str | None,
) -> None:
    """Set the password of the user NAME, for clusters with SCRAM; list the users without NAME.

    The password is typed, or read from the first line of standard input. The cluster receives a
    salted hash of it.

    \b
    ottla security user anna
    ottla security user anna < password.txt
    ottla security user anna --delete
    ottla security user anna --file /etc/ottla/users    # for PLAIN, without a cluster
    """
    if path is not None:
        _change_file(Path(path), output, name, iterations, is_deletion=is_deletion)
        return
    chosen = scram.mechanism_of(mechanism)
    if name is None:
        if is_deletion:
            raise click.UsageError("Name the user whose credential is to be deleted.")
        _list(brokers, output)
    elif is_deletion:
        delete_credential(brokers, ScramDeletion(name, chosen))
        output.done(f"Deleted the {mechanism} credential of {name}.", user=name, deleted=True)
    else:
        row = ScramUpsertion(name, chosen, _password(name), iterations)
        set_password(brokers, row)
        output.done(f"Set the {mechanism} password of {name}.", user=name, mechanism=mechanism)


def _change_file(
    path: Path, output: Output, name: str | None, iterations: int, *, is_deletion: bool
) -> None:
    """Set or delete a user of a file, which is replaced as a whole."""
    if name is None:
        raise click.UsageError("Name the user to change in the file.")
    try:
        users = users_of(path.read_text("utf-8")) if path.exists() else {}
        if is_deletion:
            if users.pop(name, None) is None:
                raise ConfigError(f"{path} has no user {name}")
        else:
            salt = secrets.token_bytes(SALT_BYTES)
            users[name] = credential_of_password(USERS_MECHANISM, _password(name), salt, iterations)
        write_private(path, users_text(users))
    except (OSError, ValueError) as error:
        raise ConfigError(f"the users in {path} cannot be changed: {error}") from error
    if is_deletion:
        output.done(f"Deleted {name} from {path}.", user=name, deleted=True)
    else:
        output.done(f"Set the password of {name} in {path}.", user=name)


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
