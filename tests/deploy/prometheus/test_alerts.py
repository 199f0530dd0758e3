"""Prometheus takes the rules, and each alert fires and falls silent."""

from typing import Any

import yaml
from tests.programs import ROOT
from tests.prometheus_programs import check

ALERTS = ROOT / "deploy" / "alerts"


def parsed(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ALERTS / name).read_text())
    return found


def test_prometheus_takes_the_rules() -> None:
    done = check("check", "rules", "--lint=all", "--lint-fatal", str(ALERTS / "rules.yaml"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_fires_and_falls_silent_when_its_cause_ends() -> None:
    (group,) = parsed("rules.yaml")["groups"]
    tests = parsed("tests.yaml")["tests"]
    assert [each["name"] for each in tests] == [rule["alert"] for rule in group["rules"]]
    for each in tests:
        fires, ends = each["promql_expr_test"]
        asked = f'count(ALERTS{{alertname="{each["name"]}", alertstate="firing"}})'
        assert fires["expr"] == ends["expr"] == asked
        assert fires["exp_samples"], each["name"]
        assert not ends["exp_samples"], each["name"]
    done = check("test", "rules", str(ALERTS / "tests.yaml"))
    assert done.returncode == 0, done.stdout + done.stderr
