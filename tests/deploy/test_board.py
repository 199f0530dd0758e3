"""The board in `deploy/grafana`: what it asks for exists, and it is found."""

import re

import pytest
import yaml
from tests.programs import ROOT
from tools.board_image import expression, panels
from tools.reference.metrics import declared

METRICS = declared()
GRAFANA = ROOT / "deploy" / "grafana"


def queries() -> list[str]:
    """Return each query of the board, its variables filled in."""
    targets = [target for panel in panels() for target in panel["targets"]]
    return [expression(target, ".*", "5m") for target in targets]


def test_a_query_is_about_series_that_exist_by_labels_that_they_have() -> None:
    metric_of = {each: METRICS[name] for name in METRICS for each in METRICS[name].series}
    for query in queries():
        (name,) = re.findall(r"\bbinwright_\w+", query)
        by = {
            label for labels in re.findall(r"by \(([^)]*)\)", query) for label in labels.split(", ")
        }
        buckets = {"le"} if name.endswith("_bucket") else set()
        assert by <= {*metric_of[name].labels, *buckets}, query


def test_no_variable_is_left_in_a_query() -> None:
    assert not [query for query in queries() if "$" in query]


def test_panels_do_not_overlap_and_have_ids_of_their_own() -> None:
    assert len({panel["id"] for panel in panels()}) == len(panels())
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels())
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)


@pytest.mark.parametrize("legend", ["group", "table"])
def test_a_legend_names_labels_that_the_query_keeps(legend: str) -> None:
    for panel in panels():
        for target in panel["targets"]:
            if f"{{{{{legend}}}}}" in target["legendFormat"]:
                assert re.search(rf"by \([^)]*\b{legend}\b", target["expr"]), target


def test_grafanas_sidecar_finds_the_board() -> None:
    found = yaml.safe_load((GRAFANA / "kustomization.yaml").read_text())
    assert found["generatorOptions"]["labels"] == {"grafana_dashboard": "1"}
    assert found["configMapGenerator"][0]["files"] == ["binwright.json"]
