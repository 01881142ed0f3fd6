"""`ottla streams reset`: shows what an application would lose; --execute begins it anew.

Follows kafka-streams-application-reset: only while no instance runs. Where the input was read is in the checkpoint, so
that the application reads it from its beginning afterwards.
"""

import click

from ottla.client.brokers import Brokers
from ottla.streams.app_settings import checkpoint_of
from ottla.streams.application_reset import CHECKPOINT, execute_reset, plan_reset
from ottla.tools import options
from ottla.tools.output import Output, note

_COLUMNS = ("kind", "name")


@click.command("reset")
@click.option("--application-id", required=True, metavar="ID", help="The application.")
@click.option("--state-dir", metavar="FOLDER", help="Where its checkpoints are, if it was told.")
@click.option("--execute", is_flag=True, help="Do it; without this it is only shown.")
@options.connected
def command(
    brokers: Brokers, output: Output, application_id: str, state_dir: str | None, execute: bool
) -> None:
    """Remove the checkpoint, the internal topics and the groups of an application."""
    checkpoint = checkpoint_of(state_dir, application_id)
    removals = plan_reset(brokers, application_id, checkpoint)
    if execute:
        execute_reset(brokers, removals)
    rows = [
        {
            "application_id": application_id,
            "kind": each.kind,
            "name": each.name,
            "executed": execute,
        }
        for each in removals
    ]
    output.rows(rows, _COLUMNS, empty=f"There is nothing of {application_id}.")
    if rows and all(each.kind != CHECKPOINT for each in removals):
        note(
            f"There is no checkpoint in {checkpoint}: where the input was read, and the state, are not reset. "
            "Give --state-dir if the application was told another folder."
        )
    if rows:
        done = f"Removed: {application_id} begins anew when it is started."
        note(done if execute else "Nothing is changed yet: add --execute to do it.")
