"""`ottla scripts`: the group of the commands in `installing` and `running`."""

import click

from ottla.tools.scripts.installing import install, listing
from ottla.tools.scripts.running import run

command = click.Group(
    "scripts",
    {"list": listing, "run": run, "install": install},
    help="Apache Kafka's scripts under their own names.",
)
