"""`ottla scripts`: the group of the commands in `installing`."""

import click

from ottla.tools.scripts.installing import install, listing

command = click.Group(
    "scripts",
    {"list": listing, "install": install},
    help="Apache Kafka's scripts under their own names.",
)
