"""The objects of the chart, those of kustomize, and how they compare."""

import tomllib
from pathlib import Path
from typing import Any

import yaml
from tests.programs import run_program

from binwright.kubernetes.objects import Obj

LABELS = {f"app.kubernetes.io/{name}": "binwright" for name in ("name", "part-of")}
OF_HELM = ("helm.sh/resource-policy", "binwright.dev/settings")
"""Annotations that the manifests do not have: what stays, and what starts pods again."""
Objects = dict[tuple[str, str], Obj]


def objects(text: str) -> Objects:
    """Return objects by kind and name, with the files in ConfigMaps as values."""
    found: Objects = {}
    for each in filter(None, yaml.safe_load_all(text)):
        key = (each["kind"], each["metadata"]["name"])
        assert key not in found
        files = each.get("data", {})
        for name, content in files.items():
            if name == "binwright.toml":
                files[name] = tomllib.loads(content)
            elif name == "pod.yaml":
                files[name] = yaml.safe_load(content)
        found[key] = each
    return found


def without_annotations(part: Any) -> Any:
    """Return an object without the annotations that only the chart has."""
    match part:
        case dict():
            kept = {key: without_annotations(value) for key, value in part.items()}
            if annotations := kept.get("annotations"):
                for name in OF_HELM:
                    annotations.pop(name, None)
            return {k: v for k, v in kept.items() if (k, v) not in EMPTY}
        case list():
            return [without_annotations(each) for each in part]
    return part


EMPTY: list[tuple[str, Obj]] = [("annotations", {}), ("metadata", {})]


def kustomized(binaries: Path, directory: Path) -> Objects:
    """Return what kustomize builds, without the namespace, which Helm is given."""
    kubectl = str(binaries / "kubectl")
    done = run_program(kubectl, "kustomize", str(directory), timeout_s=60.0)
    assert done.returncode == 0, done.stderr
    return {key: each for key, each in objects(done.stdout).items() if key[0] != "Namespace"}


def check_equal(chart: Objects, manifests: Objects) -> None:
    """Check that they have the same objects, but for what only the chart has.

    kustomize labels what the base has, the chart everything.
    """
    assert chart.keys() == manifests.keys()
    for key, each in manifests.items():
        meta = each["metadata"]
        meta["labels"] = {**meta.get("labels", {}), **LABELS}
        if key[0].startswith("ValidatingAdmissionPolicy"):
            del meta["namespace"]  # kustomize's mistake: they belong to no namespace
        assert without_annotations(chart[key]) == each, key
