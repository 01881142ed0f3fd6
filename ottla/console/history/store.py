"""The stored history: rings of points in SQLite, one for each series and resolution.

A point overwrites the one that is `capacity` steps older, so that the file does not grow: 2 808
points of about 30 bytes for each of `SERIES_MAX` series of a cluster. Series that have not been
seen for 7 days are deleted.
"""

from collections.abc import Iterable, Sequence
from sqlite3 import Row

from ottla.console.accounts.database import Database
from ottla.console.history.points import (
    LEVELS,
    Kind,
    Period,
    Point,
    RatedPoint,
    Subject,
    forecast_of,
    points_of,
    rated,
)
from ottla.console.model.groups import Forecast
from ottla.console.model.overview import Sample
from ottla.console.sampler import Listener

SERIES_MAX = 1000
_WEEK_S = 7 * 86_400
_TABLES = """
CREATE TABLE IF NOT EXISTS history_series (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    cluster TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    seen_s INTEGER NOT NULL,
    UNIQUE (cluster, kind, name)
);
CREATE TABLE IF NOT EXISTS history_points (
    level INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    series INTEGER NOT NULL,
    at_s INTEGER NOT NULL,
    records INTEGER,
    size_bytes INTEGER,
    lag INTEGER,
    lag_s REAL,
    PRIMARY KEY (level, slot, series)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS history_rollups (
    cluster TEXT NOT NULL,
    level INTEGER NOT NULL,
    until_s INTEGER NOT NULL,
    PRIMARY KEY (cluster, level)
) WITHOUT ROWID;
"""
_SERIES_ID = "SELECT id FROM history_series WHERE cluster = ? AND kind = ? AND name = ?"
_INSERT = "INSERT OR REPLACE INTO history_points VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
# The slots are read one by one: the points of one moment are neighbours in the file.
_READ = """
WITH RECURSIVE slots(slot) AS (
    VALUES (0) UNION ALL SELECT slot + 1 FROM slots WHERE slot + 1 < :capacity
)
SELECT p.* FROM slots CROSS JOIN history_points p
ON p.level = :level AND p.slot = slots.slot AND p.series = :series
WHERE p.at_s > :after_s AND p.at_s <= :now_s ORDER BY p.at_s
"""
_ROLL_UP = """
INSERT OR REPLACE INTO history_points
SELECT :level, at_s / :step % :capacity, series, at_s / :step * :step,
    max(records), max(size_bytes), max(lag), max(lag_s)
FROM history_points
WHERE level = :level - 1 AND slot BETWEEN :first AND :last AND at_s >= :start AND at_s < :end
GROUP BY series
"""


class History(Listener):
    """The series of all clusters; any thread may use it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.create(_TABLES)
        self._ids: dict[str, dict[Subject, int]] = {}

    def on_begin(self, cluster: str) -> None:
        """Forget the series: another console may have added or deleted some."""
        self._ids.pop(cluster, None)

    def on_sample(self, sample: Sample) -> None:
        """Store the points of a sample."""
        self.add(sample.cluster, points_of(sample))

    def add(self, cluster: str, points: Iterable[tuple[Subject, Point]]) -> None:
        """Store points of one moment; new series beyond `SERIES_MAX` are left out."""
        try:
            with self._database.transaction():
                self._add(cluster, points)
        except BaseException:
            # The numbers of series that have been rolled back are wrong.
            self._ids.pop(cluster, None)
            raise

    def read(self, cluster: str, subject: Subject, period: Period, now_s: int) -> list[Point]:
        """Return the points of a period up to now, oldest first; empty for an unknown subject."""
        row = self._database.row(_SERIES_ID, (cluster, subject.kind.value, subject.name))
        if row is None:
            return []
        level = LEVELS[period.level]
        rows = self._database.rows(
            _READ,
            {
                "capacity": level.capacity,
                "level": period.level,
                "series": row["id"],
                "after_s": now_s - level.step_s * level.capacity,
                "now_s": now_s,
            },
        )
        return [_point(row) for row in rows]

    def rates(self, cluster: str, subject: Subject, period: Period, now_s: int) -> list[RatedPoint]:
        """Return the points of a period with their rates."""
        points = self.read(cluster, subject, period, now_s)
        return rated(points, LEVELS[period.level].step_s)

    def forecast(self, cluster: str, group_id: str, now_ms: int) -> Forecast:
        """Return when a group will have caught up, by its lag in the last 10 minutes."""
        subject = Subject(Kind.GROUP, group_id)
        points = self.read(cluster, subject, Period.HOUR, now_ms // 1000)
        return forecast_of(points, now_ms)

    def is_full(self, cluster: str) -> bool:
        """Return True if the cluster has as many series as are kept."""
        return len(self._series_of(cluster)) >= SERIES_MAX

    def _add(self, cluster: str, points: Iterable[tuple[Subject, Point]]) -> None:
        rows: list[tuple[object, ...]] = []
        ids: list[int] = []
        now_s = 0
        level = LEVELS[0]
        for subject, point in points:
            number = self._series(cluster, subject, point.at_s)
            now_s = max(now_s, point.at_s)
            if number is not None:
                ids.append(number)
                slot = point.at_s // level.step_s % level.capacity
                rows.append((0, slot, number, point.at_s, *_values(point)))
        self._database.change_many(_INSERT, rows)
        for index in range(1, len(LEVELS)):
            if self._roll_up(cluster, index, now_s) and index == len(LEVELS) - 1:
                self._mark_seen(cluster, ids, now_s)

    def _series(self, cluster: str, subject: Subject, at_s: int) -> int | None:
        known = self._series_of(cluster)
        number = known.get(subject)
        if number is None and len(known) < SERIES_MAX:
            key = cluster, subject.kind.value, subject.name
            # Another console of the same file may have inserted it.
            self._database.change(
                "INSERT OR IGNORE INTO history_series VALUES (NULL, ?, ?, ?, ?)", (*key, at_s)
            )
            row = self._database.row(_SERIES_ID, key)
            assert row is not None, "the series has been inserted in this transaction"
            number = known[subject] = row["id"]
        return number

    def _series_of(self, cluster: str) -> dict[Subject, int]:
        if cluster not in self._ids:
            rows = self._database.rows("SELECT * FROM history_series WHERE cluster = ?", (cluster,))
            self._ids[cluster] = {
                Subject(Kind(row["kind"]), row["name"]): row["id"] for row in rows
            }
        return self._ids[cluster]

    def _roll_up(self, cluster: str, index: int, now_s: int) -> bool:
        """Write the points of a lower resolution whose time has passed; return True if there are."""
        level, source = LEVELS[index], LEVELS[index - 1]
        end = now_s // level.step_s * level.step_s
        row = self._database.row(
            "SELECT until_s FROM history_rollups WHERE cluster = ? AND level = ?", (cluster, index)
        )
        if row is not None and row["until_s"] == end:
            return False
        oldest = end - source.step_s * source.capacity
        start = max(oldest, min(end, row["until_s"])) if row is not None else end
        for at_s in range(start, end, level.step_s):
            # The steps divide one another: the source's slots are neighbours in its ring.
            first = at_s // source.step_s % source.capacity
            self._database.change(
                _ROLL_UP,
                {
                    "level": index,
                    "step": level.step_s,
                    "capacity": level.capacity,
                    "first": first,
                    "last": first + level.step_s // source.step_s - 1,
                    "start": at_s,
                    "end": at_s + level.step_s,
                },
            )
        self._database.change(
            "INSERT OR REPLACE INTO history_rollups VALUES (?, ?, ?)", (cluster, index, end)
        )
        return True

    def _mark_seen(self, cluster: str, ids: Sequence[int], now_s: int) -> None:
        """Remember which series still exist, and delete those that are too old."""
        self._database.change_many(
            "UPDATE history_series SET seen_s = ? WHERE id = ?", [(now_s, number) for number in ids]
        )
        gone = "SELECT id FROM history_series WHERE cluster = ? AND seen_s < ?"
        values = (cluster, now_s - _WEEK_S)
        if self._database.row(gone, values) is not None:
            self._database.change(
                f"DELETE FROM history_points WHERE series IN ({gone})",  # noqa: S608 - constants
                values,
            )
            self._database.change(
                "DELETE FROM history_series WHERE cluster = ? AND seen_s < ?", values
            )
            del self._ids[cluster]


def _values(point: Point) -> tuple[object, ...]:
    return point.records, point.size_bytes, point.lag, point.lag_s


def _point(row: Row) -> Point:
    return Point(row["at_s"], row["records"], row["size_bytes"], row["lag"], row["lag_s"])
