"""The exercises by name, in the order in which they are listed."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from ottla.base.loading import deferred_module
from ottla.learn.course import OPTIONS
from ottla.learn.exercises import readers, replicas, settings
from ottla.learn.exercises.exercise import Check, Exercise
from ottla.learn.stage import Stage

# Only an exercise that runs needs brokers.
if TYPE_CHECKING:
    from ottla import testing
else:
    testing = deferred_module("ottla.testing")

EXERCISES: Mapping[str, Exercise] = {
    exercise.name: exercise
    for subject in (replicas.LIST, readers.LIST, settings.LIST)
    for exercise in subject.exercises
}


@contextmanager
def prepared(exercise: Exercise) -> "Iterator[tuple[testing.Cluster, Check]]":
    """Start the cluster of an exercise; yield it with the check of its goal."""
    options = {**OPTIONS, **exercise.options}
    with testing.Cluster(exercise.brokers, options=options) as cluster, ExitStack() as resources:
        stage = Stage(exercise.name, cluster, lambda event: None, resources)
        yield cluster, exercise.prepare(stage)
