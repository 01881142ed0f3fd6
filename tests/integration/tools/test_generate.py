"""`ottla generate`: promtool accepts the configurations and rules."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ottla.tools.generate import alert_rules, prometheus_config
from ottla.tools.generate.alert_rules import AlertThresholds


def promtool(*command_line: str) -> str:
    """Run promtool, which must accept the file."""
    done = subprocess.run(["promtool", *command_line], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.needs("promtool")
def test_promtool_accepts_configuration_and_rules(tmp_path: Path) -> None:
    """Prometheus' own checker finds nothing to complain about."""
    rules, config = tmp_path / "rules.yml", tmp_path / "prometheus.yml"
    rules.write_text(alert_rules.text_of(AlertThresholds()), "utf-8")
    text = prometheus_config.text_of("east", ("a:9308", "b:9308"), "10s", (str(rules),))
    config.write_text(text, "utf-8")
    assert "17 rules found" in promtool("check", "config", str(config))
    assert "17 rules found" in promtool("check", "rules", str(rules))


@pytest.mark.needs("promtool")
def test_lag_alert_fires_after_its_time_and_ends(tmp_path: Path) -> None:
    """promtool evaluates the rule with recorded values: five minutes above the limit, then below."""
    rules, cases = tmp_path / "rules.yml", tmp_path / "cases.yml"
    rules.write_text(alert_rules.text_of(AlertThresholds()), "utf-8")
    series = 'kafka_consumergroup_group_max_lag_seconds{group="g",cluster="c"}'
    fires = {"exp_labels": {"severity": "warning", "group": "g", "cluster": "c"}}
    (rule,) = (
        alert_rule
        for alert_rule in alert_rules.rules(AlertThresholds())
        if alert_rule.name == "OttlaGroupBehind"
    )
    fires["exp_annotations"] = {
        "summary": "Group g is 6m 40s behind",
        "description": rule.remedy,
    }
    case = {
        "interval": "1m",
        "input_series": [{"series": series, "values": "0 400x8 10x5"}],
        "alert_rule_test": [
            {"eval_time": "5m", "alertname": rule.name, "exp_alerts": []},
            {"eval_time": "8m", "alertname": rule.name, "exp_alerts": [fires]},
            {"eval_time": "12m", "alertname": rule.name, "exp_alerts": []},
        ],
    }
    document = {"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": [case]}
    cases.write_text(yaml.safe_dump(document), "utf-8")
    assert "SUCCESS" in promtool("test", "rules", str(cases))


@pytest.mark.needs("systemd-analyze")
def test_systemd_accepts_the_unit_of_a_pipeline(tmp_path: Path, run_alone: Any) -> None:
    """systemd's own checker finds nothing to complain about."""
    file, unit = tmp_path / "late.yaml", tmp_path / "ottla-late.service"
    file.write_text(
        "name: late\nsources: {rows: {topic: rows}}\nsinks: {out: {from: rows, topic: out}}\n"
    )
    words = ("--pipeline", str(file), "--to", str(unit), "--program", sys.executable)
    assert run_alone("generate", "systemd", *words, "--user", "root").code == 0
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert unit.name not in done.stderr
