"""The shipped templates of a consumer's pod."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from binwright.controller.kube.deployment import checked, parse
from binwright.core.errors import TemplateRefused

DEPLOY = Path(__file__).parents[2] / "deploy"
LAKE = {"name": "lake", "persistentVolumeClaim": {"claimName": "binwright-lake"}}


def pod(file: str) -> dict[str, Any]:
    found = next(yaml.safe_load_all((DEPLOY / file).read_text()))["data"]["pod.yaml"]
    return parse(found, file).pod


def test_the_local_template_is_the_base_s_with_the_lake_s_volume() -> None:
    base, local = pod("consumers/consumer.yaml"), pod("overlays/local/consumer.yaml")
    base["spec"]["securityContext"] |= {"fsGroup": 185, "fsGroupChangePolicy": "OnRootMismatch"}
    base["spec"]["volumes"].append(LAKE)
    base["spec"]["containers"][0]["volumeMounts"].append({"name": "lake", "mountPath": "/lake"})
    assert local == base


@pytest.mark.parametrize("kind", ["hostPath", "ephemeral"])
def test_a_volume_that_ties_a_consumer_to_its_place_is_refused(kind: str) -> None:
    found = pod("consumers/consumer.yaml")
    found["spec"]["volumes"].append({"name": "own", kind: {}})
    with pytest.raises(TemplateRefused, match=f"{kind}: a consumer keeps nothing of its own"):
        checked(found, "test")


@pytest.mark.parametrize("where", ["namespace", "all-namespaces"])
def test_the_controller_may_do_elsewhere_what_it_may_at_home(where: str) -> None:
    _, home, _ = yaml.safe_load_all((DEPLOY / "base/controller-rbac.yaml").read_text())
    there, binding = yaml.safe_load_all((DEPLOY / where / "rights.yaml").read_text())
    assert there["rules"] == home["rules"]
    assert binding["roleRef"]["kind"] == there["kind"]


def test_a_claim_is_taken_because_all_consumers_share_it() -> None:
    found = pod("consumers/consumer.yaml")
    found["spec"]["volumes"].append(LAKE)
    assert checked(found, "test").pod == found
