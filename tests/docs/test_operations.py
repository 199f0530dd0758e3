"""What operations.md, the runbook and the alert rules name is there."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.alerts.faults import ALONE, TOGETHER
from tests.docs.words import DOCS, ROOT, quoted, unknown
from tools.reference.metrics import declared

from binwright.cli.main import COMMANDS
from binwright.inspect.decide.doctor.brokers import RENEWED_S
from binwright.runtime.settings.consumer import LakeSettings

METRICS = declared()
RUNBOOK = DOCS / "runbook.md"
PAGES = pytest.mark.parametrize("page", [DOCS / "operations.md", RUNBOOK], ids=lambda p: p.stem)
METRIC_OF = {each: name for name in METRICS for each in METRICS[name].series}
"""A name in a query -> the metric."""
ALERTS = ROOT / "deploy" / "alerts"
OTHER_PROGRAMS = {"kubectl", "kafka-consumer-groups.sh"}
"""That show causes outside of binwright."""


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((ALERTS / "rules.yaml").read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


@PAGES
def test_every_setting_and_log_event_on_the_page_exists(page: Path) -> None:
    assert unknown(page) == set()


@PAGES
def test_every_metric_on_the_page_exists(page: Path) -> None:
    named = {word for word in quoted(page) if word.startswith("binwright_")}
    assert named
    assert named <= METRICS.keys()


def test_every_alert_has_a_section_and_every_section_an_alert() -> None:
    headings = re.findall(r"^## (Binwright\w+)$", RUNBOOK.read_text(), re.MULTILINE)
    assert headings == [rule["alert"] for rule in rules()]
    for rule in rules():
        anchor = rule["annotations"]["runbook"]
        assert anchor == f"docs/runbook.md#{rule['alert'].lower()}"


def test_every_section_has_what_is_seen_why_the_command_and_what_to_do() -> None:
    for section in re.split(r"^## ", RUNBOOK.read_text(), flags=re.MULTILINE)[1:]:
        parts = re.findall(r"^- \*\*(.+?):\*\*", section, re.MULTILINE)
        assert parts == ["See", "Why", "Command", "Do"], section
        (command,) = re.findall(r"^- \*\*Command:\*\* `(.+?)`", section, re.MULTILINE)
        program, named, *_ = command.split()
        assert named in COMMANDS if program == "binwright" else program in OTHER_PROGRAMS, section


def test_an_alert_is_about_metrics_that_exist_by_labels_that_they_have() -> None:
    for rule in rules():
        names = set(re.findall(r"\bbinwright_\w+", rule["expr"]))
        assert names, rule
        assert names <= METRIC_OF.keys(), rule
        wanted = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        for by in re.findall(r"by \(([^)]*)\)", rule["expr"]):
            kept = set(re.split(r",\s*", by))
            assert wanted <= kept, rule
            wanted |= kept
        scraped = {"job", "instance"}  # Prometheus adds them
        for name in names:
            assert wanted <= {*METRICS[METRIC_OF[name]].labels, *scraped}, rule


BUCKET = re.compile(r'(binwright_\w+)_bucket\{le=~"(.+?)\|(.+?)"\}')


def test_a_rule_counts_a_bucket_of_its_histogram_as_prometheus_2_and_3_write_it() -> None:
    counted = {rule["alert"]: BUCKET.findall(rule["expr"]) for rule in rules()}
    assert {alert for alert, found in counted.items() if found} == {
        rule["alert"] for rule in rules() if "_bucket" in rule["expr"]
    }
    for metric, version_2, version_3 in {each for found in counted.values() for each in found}:
        assert float(version_2) in METRICS[metric].bounds
        assert version_3 == f"{float(version_2)}"
        assert version_2 == version_3.removesuffix(".0")


def test_freshness_burns_by_rows_three_times_as_old_as_the_default_wants() -> None:
    burning = [rule for rule in rules() if "FreshnessBurns" in rule["alert"]]
    assert len(burning) == 2
    wanted = 3 * LakeSettings().freshness_s
    for rule in burning:
        assert {float(bound) for _, bound, _ in BUCKET.findall(rule["expr"])} == {wanted}
        assert f"older than {wanted:g} s" in rule["annotations"]["summary"]


def test_the_doctor_warns_of_a_certificate_when_the_alert_does() -> None:
    (rule,) = (each for each in rules() if each["alert"] == "BinwrightCertificateExpires")
    assert rule["expr"].endswith(f"< {RENEWED_S:.0f}")


def test_an_alert_that_is_shown_to_fire_within_two_minutes_waits_one_at_most() -> None:
    waits = {rule["alert"]: rule.get("for", "0m") for rule in rules()}
    shown = {alert for fault in (*TOGETHER, *ALONE) for alert in fault.alerts}
    assert {waits[alert] for alert in shown} <= {"0m", "30s", "1m"}


def test_the_operator_s_rules_are_the_same() -> None:
    found = yaml.safe_load((ALERTS / "prometheusrule.yaml").read_text())
    assert found["kind"] == "PrometheusRule"
    assert found["spec"] == yaml.safe_load((ALERTS / "rules.yaml").read_text())
