"""The images of the shipped Dockerfiles: their user, their contents, and what they must lack."""

import json
import tomllib
from typing import Any

import pytest
from packaging.markers import Marker
from packaging.utils import canonicalize_name
from tests.programs import LIST_PACKAGES, ROOT
from tools.bill_of_materials import bill_of_materials
from tools.locks import REQUIREMENTS, parse_lock

from .conftest import MEGABYTE, REVISION, Image

pytestmark = pytest.mark.images

LARGEST = {"monitor": 100, "controller": 180, "consumer": 600}  # MB beyond the base
LABELS = "org.opencontainers.image."
TOOLS = ("pip", "pip3", "gcc", "cc", "g++", "make", "ld", "git", "curl", "java", "javac")
LOOK = """
import importlib.util, json, os, shutil, sys
from pathlib import Path
jars = [str(p) for top in ("/opt", "/usr") for p in Path(top).rglob("*.jar")]
print(json.dumps({
    "uid": os.getuid(), "gid": os.getgid(), "jars": jars,
    "tools": [name for name in sys.argv[1:] if shutil.which(name)],
    "modules": [n for n in ("pip", "setuptools", "wheel") if importlib.util.find_spec(n)],
    "writable": [top for top in ("/opt", "/usr", "/etc", "/") if os.access(top, os.W_OK)],
}))
"""
OF_THE_BASE = f"""
import os, sys
python = sys._base_executable
os.execv(python, [python, "-c", {LOOK!r}, *sys.argv[1:]])
"""


def config(image: Image) -> dict[str, Any]:
    described: dict[str, Any] = image.client.images.get(image.name).attrs["Config"]
    return described


def test_the_entrypoint_is_the_service(image: Image) -> None:
    code, output = image.run("--help")
    assert code == 0, output
    assert output.startswith(f"usage: python -m binwright.{image.service}")


def test_invalid_settings_end_it_with_2_and_the_reason(image: Image) -> None:
    slot = ("--slot", "0") if image.service == "consumer" else ()
    code, output = image.run(*slot, environment={"BINWRIGHT_MONITOR__INTERVAL_S": "-1"})
    assert code == 2
    assert "monitor.interval_s" in output


def test_it_runs_as_an_unprivileged_user(image: Image) -> None:
    assert config(image)["User"] == "10001:10001"
    code, output = image.run("-c", LOOK, entrypoint="python")
    assert code == 0, output
    found = json.loads(output)
    assert (found["uid"], found["gid"], found["writable"]) == (10001, 10001, [])


def test_its_labels_name_version_and_revision(image: Image) -> None:
    labels = config(image)["Labels"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert labels[f"{LABELS}title"] == f"binwright-{image.service}"
    assert labels[f"{LABELS}version"] == project["version"]
    assert labels[f"{LABELS}revision"] == REVISION
    assert labels[f"{LABELS}licenses"] == "Apache-2.0"
    assert labels[f"{LABELS}description"]


def test_it_has_no_build_tools_and_no_jvm(image: Image) -> None:
    """Neither in the service's environment nor in the base's own."""
    for start in (LOOK, OF_THE_BASE):
        code, output = image.run("-c", start, *TOOLS, entrypoint="python")
        assert code == 0, output
        found = json.loads(output)
        assert (found["tools"], found["modules"], found["jars"]) == ([], [], []), start


def test_it_has_the_packages_of_its_bill_of_materials(image: Image) -> None:
    """That is made of the lock; setuptools, which some package names, is removed again."""
    code, output = image.run("-c", LIST_PACKAGES, entrypoint="python")
    assert code == 0, output
    lock = REQUIREMENTS / f"{image.service}.txt"
    described = json.loads(bill_of_materials(lock, version="0", license_="Apache-2.0", epoch=0))
    listed = {each["name"]: each["version"] for each in described["components"]}
    for each in parse_lock(lock.read_text()):
        if each.name == "setuptools" or (each.marker and not Marker(each.marker).evaluate()):
            del listed[each.name]
    found = {canonicalize_name(name): each for name, each in json.loads(output).items()}
    assert {name: each for name, each in found.items() if name != "binwright"} == listed


def test_it_is_not_larger_than_allowed(image: Image) -> None:
    assert image.added < LARGEST[image.service] * MEGABYTE
