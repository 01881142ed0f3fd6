"""The action of a command line, and its errors as Apache Kafka's tools print them.

The sentence of an error depends on the place at which the Java code waits for a response: the
exception of an API may be the cause of an ExecutionException, which may be the cause of a
RuntimeException.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ottla.base.errors import ApiError, OttlaError
from ottla.client.admin import groups
from ottla.client.brokers import Brokers
from ottla.client.errors import HandshakeFailed, TimedOut, Unsupported
from ottla_scripts.exits import NoSuchFile, UsageError
from ottla_scripts.flags import Options
from ottla_scripts.java_errors import is_authentication, java_exception, java_message
from ottla_scripts.printing import err, out
from ottla_scripts.session import cluster

Action = Callable[[Brokers, Options], None]
_RUNTIME = "java.util.concurrent.ExecutionException: "
NO_BROKERS = "Failed to find brokers to send ListGroups"
"""The message if the list of groups cannot be requested at all."""


def execute(options: Options, action: Action, kind: str, *, error_code: int = 0) -> int:
    """Run an action on groups of this kind, and return the exit code.

    An error of the cluster is printed on standard output. So is a value that cannot be parsed, if
    the exit code of errors is 0.
    """
    try:
        with cluster(options) as brokers:
            if options["timeout"] <= 0:
                raise _no_time(options, kind)
            brokers.timeout_s = options["timeout"] / 1000
            action(brokers, options)
    except NoSuchFile as error:
        failure: Exception = OttlaError(f"java.nio.file.NoSuchFileException: {error}")
    except UsageError as error:
        if error_code or not error.is_parse_error:
            raise
        failure = error
    except ValueError as error:
        raise UsageError(str(error)) from error
    except OttlaError as error:
        failure = error
    else:
        return 0
    print_error(f"Executing {kind} group command failed due to {java_message(failure)}")
    return error_code


def _no_time(options: Options, kind: str) -> OttlaError:
    """Return the error of the Java client if a request has no time at all."""
    if "list" in options:
        return OttlaError(f"{_RUNTIME}org.apache.kafka.common.KafkaException: {NO_BROKERS}")
    call = f"describe{kind.capitalize()}Groups(api=FIND_COORDINATOR)"
    error = java_exception(TimedOut(f"Timed out waiting for a node assignment. Call: {call}"))
    return OttlaError(f"{_RUNTIME}{error}" if "reset-offsets" in options else error)


def on_parse_error(error: UsageError) -> int:
    """Print the error; the tool's main method lets the exception through."""
    err(str(error))
    return 1


def print_error(text: str) -> None:
    """Print an error on standard output."""
    out(f"\nError: {text}")


@contextmanager
def execution_exception(*, is_listing: bool = False) -> Iterator[None]:
    """Report an error of this block as ExecutionException does: with the name of its cause."""
    with _worded("", is_listing):
        yield


@contextmanager
def runtime_exception(*, is_listing: bool = False) -> Iterator[None]:
    """Report an error of this block as a RuntimeException around an ExecutionException does."""
    with _worded(_RUNTIME, is_listing):
        yield


@contextmanager
def _worded(prefix: str, is_listing: bool) -> Iterator[None]:
    try:
        yield
    except (ApiError, Unsupported, HandshakeFailed) as error:
        # A refused connection is the cause of a failed request to every broker.
        failure = (
            f"org.apache.kafka.common.KafkaException: {NO_BROKERS}"
            if is_listing and is_authentication(error)
            else java_exception(error)
        )
        raise OttlaError(f"{prefix}{failure}") from error


def all_groups(brokers: Brokers) -> list[str]:
    """Return the names of all groups."""
    with runtime_exception(is_listing=True):
        return [group.group_id for group in groups.list_groups(brokers)]


def coordinator_of(brokers: Brokers, group: str) -> tuple[str, int]:
    """Return the address of a group's coordinator, and its node id."""
    node_id = brokers.group_coordinator(group)
    address = brokers.address(node_id)
    return f"{address.host}:{address.port}", node_id


def takes(action: str, options: str) -> UsageError:
    """Return the error of an action without the options that it needs."""
    return UsageError(f"Option [{action}] takes {options}")


def check_described(options: Options) -> None:
    """Raise UsageError unless --describe selects groups, and shows one thing of them."""
    if "group" not in options and "all-groups" not in options:
        raise takes("describe", "one of these options: [all-groups], [group]")
    if sum(name in options for name in ("members", "offsets", "state")) > 1:
        raise takes("describe", "at most one of these options: [members], [offsets], [state]")
    if options["state"] is not None:
        raise UsageError("Option [describe] does not take a value for [state]")
