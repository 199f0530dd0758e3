"""Prometheus can parse every query of the board."""

from pathlib import Path

import yaml
from tests.deploy.test_board import queries
from tests.prometheus_programs import check


def test_every_query_of_the_board_parses(tmp_path: Path) -> None:
    records = [{"record": f"board:{n}", "expr": query} for n, query in enumerate(queries())]
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": records}]}))
    done = check("check", "rules", str(rules))
    assert done.returncode == 0, done.stdout + done.stderr
