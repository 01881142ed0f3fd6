"""`ottla generate`: dashboards, configurations and rules."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes_validate import latest_version, validate

from ottla.tools.generate import alert_rules, grafana_dashboard, prometheus_config, systemd, writing
from ottla.tools.generate.alert_rules import AlertThresholds
from ottla.tools.main import run


def panels() -> list[dict[str, Any]]:
    """Return the dashboard's panels as they are read back from JSON."""
    document: list[dict[str, Any]] = json.loads(json.dumps(grafana_dashboard.dashboard()))["panels"]
    return document


def test_dashboard_has_panels_that_do_not_overlap() -> None:
    """Ids are unique, and each place of the 24 columns has one panel."""
    actual = panels()
    assert len({panel["id"] for panel in actual}) == len(actual) > 30
    cells: set[tuple[int, int]] = set()
    for panel in actual:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        own = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not own & cells, panel["title"]
        cells |= own


def test_dashboard_uses_only_its_own_variables() -> None:
    """Every variable in an expression is one of the dashboard or of Grafana."""
    dashboard: Any = grafana_dashboard.dashboard()
    names = {variable["name"] for variable in dashboard["templating"]["list"]}
    text = json.dumps(dashboard)
    assert set(re.findall(r"\$\{?(\w+)", text)) <= names | {"__rate_interval", "__all"}
    assert {"job", "broker", "topic", "group"} < names


def test_queries_have_legends_and_units() -> None:
    """Each panel can be read without its expression."""
    for panel in panels():
        if panel["type"] == "row":
            continue
        assert panel["fieldConfig"]["defaults"]["unit"]
        for target in panel["targets"]:
            assert target["legendFormat"]
            assert target["expr"].count("(") == target["expr"].count(")")


def test_rules_are_yaml_with_a_remedy_each() -> None:
    """Names are unique; every alert has a severity, a summary and what to do."""
    text = alert_rules.text_of(AlertThresholds("kafka", 60, 20))
    (group,) = yaml.safe_load(text)["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    assert len(names) == len(set(names)) == 17
    for rule in group["rules"]:
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"].endswith(".")
    assert 'up{job="kafka"} == 0' in text.replace("\\", "")
    assert "max_lag_seconds > 60" in text
    assert "_total_bytes < 20" in text


def test_alert_of_damaged_partitions_covers_each_reason() -> None:
    """The gauge counts damaged records, failed maintenance, and logs that must be recovered."""
    (rule,) = [
        rule
        for rule in alert_rules.rules(AlertThresholds())
        if rule.name == "OttlaDamagedPartitions"
    ]
    for reason in ("damaged records", "failed maintenance", "recovered at the next start"):
        assert reason in rule.summary
    for reason in ("/healthz", "unusable until the next start", "upkeep failed", "is damaged"):
        assert reason in rule.remedy
    assert "restart the broker" in rule.remedy


def test_metrics_of_the_cluster_get_its_name_as_instance() -> None:
    """Names of brokers keep their instance."""
    text = prometheus_config.text_of("east", ("a:9308",), "15s", ())
    config = yaml.safe_load(text)
    (job,) = config["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["a:9308"], "labels": {"cluster": "east"}}]
    (relabel,) = job["metric_relabel_configs"]
    assert relabel["replacement"] == "east"
    pattern = re.compile(relabel["regex"])
    for name in (
        "kafka_brokers",
        "kafka_broker_info",
        "kafka_topic_partitions",
        "kafka_topic_partition_current_offset",
        "kafka_consumergroup_lag",
        "kafka_consumergroup_group_lag_seconds",
        "kafka_partition_latest_offset",
    ):
        assert pattern.fullmatch(name), name
    for name in ("kafka_server_replicamanager_leadercount", "kafka_log_log_size", "up"):
        assert not pattern.fullmatch(name), name
    assert "rule_files" not in config


def test_yaml_keeps_texts_with_special_characters() -> None:
    """Texts that YAML would read as something else are in quotes."""
    value = {"a": ["yes", "x: y", 'say "é"', "1"], "b": {"c": 1, "d": True, "e": []}, "f": "-"}
    assert yaml.safe_load(writing.yaml(value)) == value


def test_unit_of_the_repository_is_the_generated_one() -> None:
    """`deploy/ottla-broker.service` is the unit with default options."""
    deployed = Path(__file__).parents[3] / "deploy" / "ottla-broker.service"
    assert deployed.read_text("utf-8") == systemd.text_of()
    own = systemd.text_of("kafka", "/usr/bin/ottla", "/etc/x.properties", ("/data/1", "/data/2"))
    assert "ReadWritePaths=/data/1\nReadWritePaths=/data/2\n" in own
    assert "ExecStart=/usr/bin/ottla broker start --config /etc/x.properties" in own


@pytest.mark.parametrize(
    ("data", "log_dirs"), [((), "/var/lib/kafka"), (("/data/1", "/data/2"), "/data/1,/data/2")]
)
def test_the_unit_names_the_log_directories_that_it_can_write(
    data: tuple[str, ...], log_dirs: str
) -> None:
    """Without log.dirs the broker would write to its working directory, which is read-only."""
    text = systemd.text_of("kafka", config="/etc/x.properties", data=data)
    assert f"write /etc/x.properties with\n# log.dirs={log_dirs}. Then:\n" in text


@pytest.mark.parametrize(
    ("verb", "beginning"),
    [
        ("grafana-dashboard", "{\n"),
        ("prometheus-config", "# Written by"),
        ("alert-rules", "# Written by"),
        ("systemd", "# systemd unit"),
    ],
)
def test_files_are_printed_or_written(
    verb: str, beginning: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --to the text is on standard output; an existing file needs --force."""
    assert run(["generate", verb]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(beginning)
    path = tmp_path / "file"
    assert run(["generate", verb, "--to", str(path)]) == 0
    assert path.read_text("utf-8") == printed
    assert run(["generate", verb, "--to", str(path)]) == 1
    assert "add --force" in capsys.readouterr().err
    assert run(["generate", verb, "--to", str(path), "--force"]) == 0


@pytest.mark.parametrize("verb", ["grafana-dashboard", "prometheus-config", "alert-rules"])
def test_json_is_the_document(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`--output json` prints as JSON what the file has as YAML."""
    assert run(["generate", verb]) == 0
    document = yaml.safe_load(capsys.readouterr().out)
    assert run(["generate", verb, "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == document


def test_json_of_a_unit_has_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    """A unit has comments and repeated options, so its text is one value."""
    assert run(["generate", "systemd", "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"unit": systemd.text_of()}


def test_json_of_a_written_file_has_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file has the same content as without `--output json`."""
    path = tmp_path / "rules.yml"
    assert run(["generate", "alert-rules", "--to", str(path), "--output", "json"]) == 0
    printed = capsys.readouterr()
    assert (json.loads(printed.out), printed.err) == ({"file": str(path)}, "")
    assert path.read_text("utf-8") == alert_rules.text_of(AlertThresholds())


def test_invalid_target_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A target is host and port, without a scheme or path."""
    assert run(["generate", "prometheus-config", "--target", "http://a"]) == 1
    assert "it must look like host:port" in capsys.readouterr().err


@pytest.mark.parametrize("interval", ["x", "15", "0s", "-1s", "1.5s", "1s1m", "15 s"])
def test_interval_that_prometheus_would_refuse(
    interval: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence quotes it; times of Prometheus are accepted."""
    assert run(["generate", "prometheus-config", "--interval", interval]) == 1
    printed = capsys.readouterr()
    assert (printed.out, f"--interval {interval!r}" in printed.err) == ("", True)
    for good in ("15s", "500ms", "1m30s"):
        assert run(["generate", "prometheus-config", "--interval", good]) == 0


_SECURED = """\
name: Late_flights
bootstrap: broker1:9093
security: {security.protocol: SASL_SSL, sasl.mechanism: PLAIN, sasl.username: ann, password_variable: KAFKA_PASSWORD}
sources:
  flights: {topic: flights, format: json, schema: {origin: string}}
sinks:
  out: {from: flights, topic: out}
  rows: {from: flights, jdbc: 'jdbc:h2:mem:a', table: t, password_variable: DB_PASSWORD}
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    """Return a pipeline file with two passwords."""
    path = tmp_path / "late.yaml"
    path.write_text(_SECURED, "utf-8")
    return path


def test_a_pipeline_is_a_systemd_unit(pipeline: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The passwords are in a file, and the checkpoint in the unit's own folder."""
    assert run(["generate", "systemd", "--pipeline", str(pipeline)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "EnvironmentFile=/etc/ottla/late-flights.env" in lines
    assert any("DB_PASSWORD, KAFKA_PASSWORD" in line for line in lines)
    (start,) = (line for line in lines if line.startswith("ExecStart="))
    assert "pipeline run /etc/ottla/late-flights.yaml --checkpoint" in start
    assert "StateDirectory=ottla-late-flights" in lines


def test_a_pipeline_is_objects_of_kubernetes(
    pipeline: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names, labels, volumes and secrets of the objects fit each other; one pod runs at a time."""
    words = ["generate", "kubernetes", str(pipeline), "--image", "registry/ottla:1"]
    assert run(words) == 0
    objects = list(yaml.safe_load_all(capsys.readouterr().out))
    for item in objects:
        validate(item, latest_version(), strict=True)
    assert [(item["apiVersion"], item["kind"]) for item in objects] == [
        ("v1", "ConfigMap"),
        ("v1", "PersistentVolumeClaim"),
        ("apps/v1", "Deployment"),
    ]
    assert {item["metadata"]["name"] for item in objects} == {"ottla-late-flights"}
    file, _, deployment = objects
    assert file["data"]["pipeline.yaml"] == _SECURED
    spec = deployment["spec"]
    assert (spec["replicas"], spec["strategy"]["type"]) == (1, "Recreate")
    template = spec["template"]
    assert spec["selector"]["matchLabels"] == template["metadata"]["labels"]
    (container,) = template["spec"]["containers"]
    volumes = {volume["name"]: volume for volume in template["spec"]["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts.keys() == volumes.keys()
    assert volumes["pipeline"]["configMap"]["name"] == file["metadata"]["name"]
    assert container["args"][2] == f"{mounts['pipeline']}/pipeline.yaml"
    assert container["args"][4].startswith(mounts["data"])
    secrets = [row["name"] for row in container["env"] if "valueFrom" in row]
    assert secrets == ["DB_PASSWORD", "KAFKA_PASSWORD"]
    port = template["metadata"]["annotations"]["prometheus.io/port"]
    assert container["args"][6] == f"0.0.0.0:{port}"
    assert run([*words, "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["items"] == objects


def test_a_pipeline_that_cannot_run_is_no_service(
    pipeline: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The problems of the file are printed, and no unit."""
    pipeline.write_text(_SECURED.replace("from: flights, topic", "from: trains, topic"), "utf-8")
    assert run(["generate", "systemd", "--pipeline", str(pipeline)]) == 1
    assert capsys.readouterr().out == ""
