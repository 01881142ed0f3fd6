"""The assignors by name, in Kafka's order."""

from collections.abc import Mapping

from ottla.coordinators.consumer.assignment.assignors import ranges, uniform
from ottla.coordinators.consumer.assignment.assignors.plan import Assignor

ASSIGNORS: Mapping[str, Assignor] = {uniform.NAME: uniform.assign, ranges.NAME: ranges.assign}
