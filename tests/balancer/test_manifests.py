"""The manifests in `deploy/balancer`."""

from pathlib import Path

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy/balancer"


def test_the_balancer_has_no_right_in_the_cluster() -> None:
    deployment, account, _ = yaml.safe_load_all((DEPLOY / "balancer.yaml").read_text())
    pod = deployment["spec"]["template"]["spec"]
    assert pod["containers"][0]["command"] == ["python", "-m", "binwright.balancer"]
    assert pod["serviceAccountName"] == account["metadata"]["name"]
    assert not pod["automountServiceAccountToken"]
    kinds = {each["kind"] for file in DEPLOY.iterdir() for each in yaml.safe_load_all(file.open())}
    assert not {kind for kind in kinds if "Role" in kind}
