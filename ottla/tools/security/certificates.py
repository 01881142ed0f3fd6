"""`ottla security certificates`: an authority for development, and certificates that it signs."""

import importlib.util
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from ottla.base.errors import ConfigError
from ottla.base.loading import deferred
from ottla.client.security.private_files import write_private
from ottla.tools import options
from ottla.tools.output import Output
from ottla.tools.text_files import read_bytes

AUTHORITY, AUTHORITY_KEY, BROKER = "ca.crt", "ca.key", "broker.pem"
_DEFAULT_HOSTS = ("localhost", "127.0.0.1", "::1")
_NAME = re.compile(r"[A-Za-z0-9][\w.@-]{0,63}")
_PUBLIC = 0o644

_new_authority = deferred("ottla.security.issuing", "new_authority")
_issue = deferred("ottla.security.issuing", "issue")
_issued = deferred("ottla.security.issuing", "Issued")


@click.command("certificates")
@click.option("--to", "folder", metavar="FOLDER", type=click.Path(file_okay=False), required=True,
              help="The folder for the files. An authority that it has already is used again.")  # fmt: skip
@click.option("--host", "hosts", multiple=True, metavar="HOST",
              help="A name or an address of the brokers; may be repeated.  "
                   "[default: localhost and the addresses of loopback]")  # fmt: skip
@click.option("--client", "clients", multiple=True, metavar="NAME",
              help="A user for whom to create a certificate; may be repeated.")  # fmt: skip
@click.option("--days", type=click.IntRange(1, 3650), default=365, show_default=True,
              help="How long the certificates are valid.")  # fmt: skip
@click.option("--force", "is_forced", is_flag=True,
              help="Replace certificates that exist; the authority stays.")  # fmt: skip
@options.formatted
def command(output: Output, folder: str, is_forced: bool, **option_values: Any) -> None:
    """Create an authority, the certificate of brokers, and certificates of clients, in PEM.

    They are for development and tests: everyone who can read ca.key can create others. The files
    with keys are readable by their owner only. Needs pip install 'ottla[certificates]'.

    \b
    ottla security certificates --to tls
    ottla security certificates --to tls --host kafka.example.org --client anna
    """
    if importlib.util.find_spec("cryptography") is None:
        raise ConfigError(
            "this command needs cryptography, which is not installed: pip install 'ottla[certificates]'"
        )
    clients = option_values["clients"]
    for name in clients:
        if not _NAME.fullmatch(name) or f"{name}.pem" == BROKER:
            raise ConfigError(
                f"{name!r} is not a name for a client: use letters, digits and . _ @ -"
            )
    names = {BROKER: ("broker", option_values["hosts"] or _DEFAULT_HOSTS)}
    names |= {f"{name}.pem": (name, ()) for name in clients}
    written = _write(Path(folder), names, timedelta(days=option_values["days"]), is_forced)
    output.done(
        f"Wrote {', '.join(written)} to {folder}; valid for {option_values['days']} days.",
        folder=folder,
        files=written,
    )


def _write(
    folder: Path,
    names: dict[str, tuple[str, tuple[str, ...]]],
    life: timedelta,
    is_forced: bool,
) -> list[str]:
    """Write the files that are missing, and return their names."""
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    new = [name for name in names if is_forced or not (folder / name).exists()]
    written = []
    if (folder / AUTHORITY).exists() and (folder / AUTHORITY_KEY).exists():
        authority = _issued(read_bytes(folder / AUTHORITY), read_bytes(folder / AUTHORITY_KEY))
    else:
        _refuse_half(folder)
        authority = _new_authority("Ottla development authority", now, life)
        write_private(folder / AUTHORITY_KEY, authority.key.decode())
        write_private(folder / AUTHORITY, authority.certificate.decode())
        (folder / AUTHORITY).chmod(_PUBLIC)
        written += [AUTHORITY, AUTHORITY_KEY]
    if not new and not written:
        raise ConfigError(f"{folder} has all of these files: add --force to replace them")
    for file in new:
        name, hosts = names[file]
        try:
            issued = _issue(authority, name, hosts, now, life)
        except ValueError as error:
            raise ConfigError(f"the authority in {folder} cannot be read: {error}") from error
        write_private(folder / file, issued.chain.decode())
        written.append(file)
    return written


def _refuse_half(folder: Path) -> None:
    for name, other in ((AUTHORITY, AUTHORITY_KEY), (AUTHORITY_KEY, AUTHORITY)):
        if (folder / name).exists():
            raise ConfigError(f"{folder} has {name} without {other}: name another folder with --to")
