"""What operations.md and the alert rules name is there."""

import re
from typing import Any

import yaml
from tests.docs.words import DOCS, ROOT, quoted, unknown

from binwright.runtime.metrics import METRICS

PAGE = DOCS / "operations.md"
ALERTS = ROOT / "deploy" / "alerts"


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((ALERTS / "rules.yaml").read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def test_every_setting_and_log_event_on_the_page_exists() -> None:
    assert unknown(PAGE) == set()


def test_every_metric_on_the_page_exists() -> None:
    named = {word for word in quoted(PAGE) if word.startswith("binwright_")}
    assert named
    assert named <= METRICS.keys()


def test_every_alert_has_a_section_and_every_section_an_alert() -> None:
    headings = re.findall(r"^### (Binwright\w+)$", PAGE.read_text(), re.MULTILINE)
    assert headings == [rule["alert"] for rule in rules()]
    for rule in rules():
        anchor = rule["annotations"]["runbook"]
        assert anchor == f"docs/operations.md#{rule['alert'].lower()}"


def test_an_alert_is_about_metrics_that_exist_by_labels_that_they_have() -> None:
    for rule in rules():
        names = set(re.findall(r"\bbinwright_\w+", rule["expr"]))
        assert names, rule
        assert names <= METRICS.keys(), rule
        wanted = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        for by in re.findall(r"by \(([^)]*)\)", rule["expr"]):
            kept = set(re.split(r",\s*", by))
            assert wanted <= kept, rule
            wanted |= kept
        scraped = {"job", "instance"}  # Prometheus adds them
        for name in names:
            assert wanted <= {*METRICS[name].labels, *scraped}, rule


def test_the_operator_s_rules_are_the_same() -> None:
    found = yaml.safe_load((ALERTS / "prometheusrule.yaml").read_text())
    assert found["kind"] == "PrometheusRule"
    assert found["spec"] == yaml.safe_load((ALERTS / "rules.yaml").read_text())
