"""`ottla cluster rotate-secret`: replace the secret by which brokers know each other."""

import click

from ottla.base.errors import ConfigError
from ottla.client.admin.configs import Resource, ResourceType, describe_config
from ottla.client.brokers import Brokers
from ottla.operations.configs import alter
from ottla.tools import options
from ottla.tools.broker_ids import running_brokers
from ottla.tools.output import Output

_GENERATION = "inter.broker.secret.generation"
_OVERLAP = "inter.broker.secret.overlap.ms"
_AUTHENTICATION = "inter.broker.authentication"


@click.command("rotate-secret")
@options.connected
def command(brokers: Brokers, output: Output) -> None:
    """Replace the secret by which the brokers of a cluster prove that they belong to it.

    The brokers learn of the new one at once, and accept the former one for the time of
    inter.broker.secret.overlap.ms. Then they disconnect brokers that still use it. A second change
    within that time waits until it is over.

    \b
    ottla cluster rotate-secret
    """
    (first, *_) = running_brokers(brokers, ())
    resource = Resource(ResourceType.BROKER, str(first.node_id))
    names = (_GENERATION, _OVERLAP, _AUTHENTICATION)
    entries = describe_config(brokers, resource, names=names)
    values = {entry.name: entry.value or "" for entry in entries}
    if _GENERATION not in values:
        raise ConfigError(
            "the brokers have no secret of their own: only brokers of Ottla prove by one that they "
            "belong to a cluster"
        )
    if values[_AUTHENTICATION] != "secret":
        raise ConfigError(
            f"{_AUTHENTICATION}={values[_AUTHENTICATION]}: the brokers prove nothing to each other. Set "
            "it to secret and restart them"
        )
    generation = int(values[_GENERATION]) + 1
    assign = {_GENERATION: str(generation)}
    known = {_GENERATION: values[_GENERATION]}, assign
    alter(brokers, Resource(ResourceType.BROKER, ""), assign, known=known)
    seconds = int(values[_OVERLAP]) / 1000
    output.done(
        f"The brokers have a new secret (generation {generation}), and accept the former one for "
        f"{seconds:g} s.",
        generation=generation,
        overlap_seconds=seconds,
    )
