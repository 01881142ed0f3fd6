"""`ottla generate grafana-dashboard`: a dashboard for one or several clusters of Ottla."""

from collections.abc import Iterator
from pathlib import Path

import click

from ottla.tools.generate.panels import Panel, rows
from ottla.tools.generate.writing import destination, json_of, write
from ottla.tools.output import Output

# Grafana 9 and later read this version and convert it.
_SCHEMA = 38
_WIDTH = 24
_STAT_HEIGHT, _LINES_HEIGHT = 4, 8
_SOURCE = {"type": "prometheus", "uid": "${source}"}
_GOOD, _BAD = "green", "red"

Json = dict[str, object]


def dashboard(title: str = "Ottla") -> Json:
    """Return the dashboard as Grafana imports it."""
    return {
        "title": title,
        "uid": "ottla-cluster",
        "description": "Brokers, topics and groups of Ottla; written by `ottla generate`.",
        "tags": ["ottla", "kafka"],
        "schemaVersion": _SCHEMA,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": list(_variables())},
        "panels": list(_panels()),
    }


def _variables() -> Iterator[Json]:
    yield {"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"}
    leaders = "kafka_server_replicamanager_leadercount"
    yield _variable("job", "Job", f"label_values({leaders}, job)", has_all=False)
    yield _variable("broker", "Broker", f'label_values({leaders}{{job=~"$job"}}, instance)')
    topics = 'label_values(kafka_topic_partitions{job=~"$job"}, topic)'
    yield _variable("topic", "Topic", topics)
    groups = 'label_values(kafka_consumergroup_members{job=~"$job"}, consumergroup)'
    yield _variable("group", "Group", groups)


def _variable(name: str, label: str, query: str, *, has_all: bool = True) -> Json:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _SOURCE,
        "definition": query,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": has_all,
        "includeAll": has_all,
        **({"allValue": ".*", "current": {"text": "All", "value": "$__all"}} if has_all else {}),
    }


def _panels() -> Iterator[Json]:
    number, y = 0, 0
    for row in rows():
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "gridPos": {"x": 0, "y": y, "w": _WIDTH, "h": 1},
            "panels": [],
        }
        y += 1
        height = _STAT_HEIGHT if row.panels[0].is_stat else _LINES_HEIGHT
        width = _WIDTH // len(row.panels)
        for at, panel in enumerate(row.panels):
            number += 1
            grid_position = {"x": at * width, "y": y, "w": width, "h": height}
            yield _panel(panel) | {"id": number, "gridPos": grid_position}
        y += height


def _panel(panel: Panel) -> Json:
    targets = [
        {
            "refId": chr(ord("A") + at),
            "datasource": _SOURCE,
            "expr": query.expression,
            "legendFormat": query.legend or panel.title,
            "instant": panel.is_stat,
            "range": not panel.is_stat,
        }
        for at, query in enumerate(panel.queries)
    ]
    return {
        "type": "stat" if panel.is_stat else "timeseries",
        "title": panel.title,
        "description": panel.help,
        "datasource": _SOURCE,
        "targets": targets,
        "fieldConfig": {
            "defaults": _stat(panel) if panel.is_stat else _lines(panel),
            "overrides": [],
        },
        "options": _STAT_OPTIONS if panel.is_stat else _LINES_OPTIONS,
    }


_STAT_OPTIONS: Json = {
    "colorMode": "value",
    "graphMode": "none",
    "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
}
_LINES_OPTIONS: Json = {
    "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
    "tooltip": {"mode": "multi", "sort": "desc"},
}


def _stat(panel: Panel) -> Json:
    steps: list[Json] = [{"color": _GOOD if panel.good_from is None else _BAD, "value": None}]
    if panel.good_from is not None:
        steps.append({"color": _GOOD, "value": panel.good_from})
    if panel.bad_from is not None:
        steps.append({"color": _BAD, "value": panel.bad_from})
    return {
        "unit": panel.unit,
        "color": {"mode": "thresholds"},
        "thresholds": {"mode": "absolute", "steps": steps},
        "noValue": "–",
    }


def _lines(panel: Panel) -> Json:
    return {
        "unit": panel.unit,
        "min": 0,
        "color": {"mode": "palette-classic"},
        "custom": {
            "lineWidth": 1,
            "fillOpacity": 30 if panel.is_stacked else 5,
            "showPoints": "never",
            "spanNulls": True,
            "stacking": {"mode": "normal" if panel.is_stacked else "none", "group": "A"},
        },
    }


@click.command("grafana-dashboard")
@click.option("--title", default="Ottla", show_default=True, help="The title of the dashboard.")
@destination
def command(output: Output, title: str, path: Path | None, force: bool) -> None:
    """Print a dashboard for Grafana, to import as JSON.

    \b
    ottla generate grafana-dashboard --to ottla-dashboard.json
    """
    document = dashboard(title)
    write(output, document, json_of(document), path, force=force)
