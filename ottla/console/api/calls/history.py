"""Operations on the stored history."""

from ottla.console.accounts.roles import Role
from ottla.console.api.operations import CLUSTER_PATH, Operation
from ottla.console.history.points import Kind, Period, RatedPoint, Subject
from ottla.console.history.store import History
from ottla.console.model.groups import Forecast
from ottla.operations.survey.connections import ClusterConnection


def read_cluster_history(
    connection: ClusterConnection, history: History, *, period: Period = Period.HOUR
) -> list[RatedPoint]:
    """Return records, size and rates of all topics together: an hour by 10 seconds, a day by
    minutes, or a week by 10 minutes.
    """
    return _read(connection, history, Subject(Kind.CLUSTER, ""), period)


def read_topic_history(
    connection: ClusterConnection, history: History, name: str, *, period: Period = Period.HOUR
) -> list[RatedPoint]:
    """Return records, size and rates of a topic: an hour by 10 seconds, a day by minutes, or a week
    by 10 minutes.
    """
    return _read(connection, history, Subject(Kind.TOPIC, name), period)


def read_group_history(
    connection: ClusterConnection, history: History, group_id: str, *, period: Period = Period.HOUR
) -> list[RatedPoint]:
    """Return lag, lag in seconds and rates of a group: an hour by 10 seconds, a day by minutes, or
    a week by 10 minutes.
    """
    return _read(connection, history, Subject(Kind.GROUP, group_id), period)


def forecast_group(connection: ClusterConnection, history: History, group_id: str) -> Forecast:
    """Return when a group will have caught up, by its lag in the last 10 minutes."""
    return history.forecast(connection.name, group_id, connection.now_ms())


def _read(
    connection: ClusterConnection, history: History, subject: Subject, period: Period
) -> list[RatedPoint]:
    return history.rates(connection.name, subject, period, connection.now_ms() // 1000)


_GROUP = f"{CLUSTER_PATH}/groups/{{group_id}}"

OPERATIONS = (
    Operation("GET", f"{CLUSTER_PATH}/history", Role.VIEWER, read_cluster_history, "history"),
    Operation(
        "GET", f"{CLUSTER_PATH}/topics/{{name}}/history", Role.VIEWER, read_topic_history, "history"
    ),
    Operation("GET", f"{_GROUP}/history", Role.VIEWER, read_group_history, "history"),
    Operation("GET", f"{_GROUP}/forecast", Role.VIEWER, forecast_group, "history"),
)
