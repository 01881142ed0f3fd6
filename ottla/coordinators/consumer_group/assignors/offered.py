"""The assignors by name, in the order in which Kafka offers them."""

from collections.abc import Mapping

from ottla.coordinators.consumer_group.assignors import ranges, uniform
from ottla.coordinators.consumer_group.assignors.plan import Assignor

ASSIGNORS: Mapping[str, Assignor] = {uniform.NAME: uniform.assign, ranges.NAME: ranges.assign}
