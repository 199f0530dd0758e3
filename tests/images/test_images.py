"""The shipped Dockerfiles, as images: who runs in them, what is in them, and what is not."""

import json
import tomllib
from typing import Any

import pytest
from tests.programs import ROOT

from .conftest import MEGABYTE, REVISION, Image
from .engine import docker

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
    found: dict[str, Any] = json.loads(docker("image", "inspect", image.name).stdout)[0]["Config"]
    return found


def test_its_entrypoint_tells_what_it_is(image: Image) -> None:
    code, told = image.run("--help")
    assert code == 0, told
    assert told.startswith(f"usage: python -m binwright.{image.service}")


def test_without_settings_that_hold_it_ends_with_2_and_says_why(image: Image) -> None:
    done = docker(
        *("run", "--rm", "--read-only", "--network", "none"),
        *("--env", "BINWRIGHT_MONITOR__INTERVAL_S=-1", image.name),
        *(("--slot", "0") if image.service == "consumer" else ()),
    )
    assert done.returncode == 2
    assert "monitor.interval_s" in done.stderr


def test_it_runs_as_nobody_in_particular(image: Image) -> None:
    assert config(image)["User"] == "10001:10001"
    code, told = image.run("-c", LOOK, entrypoint="python")
    assert code == 0, told
    found = json.loads(told)
    assert (found["uid"], found["gid"], found["writable"]) == (10001, 10001, [])


def test_it_says_what_it_is_made_of(image: Image) -> None:
    labels = config(image)["Labels"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert labels[f"{LABELS}title"] == f"binwright-{image.service}"
    assert labels[f"{LABELS}version"] == project["version"]
    assert labels[f"{LABELS}revision"] == REVISION
    assert labels[f"{LABELS}licenses"] == "Apache-2.0"
    assert labels[f"{LABELS}description"]


def test_nothing_in_it_builds_and_nothing_is_a_jvm(image: Image) -> None:
    """Neither in our environment nor in the base's own."""
    for start in (LOOK, OF_THE_BASE):
        code, told = image.run("-c", start, *TOOLS, entrypoint="python")
        assert code == 0, told
        found = json.loads(told)
        assert (found["tools"], found["modules"], found["jars"]) == ([], [], []), start


def test_it_weighs_no_more_than_it_must(image: Image) -> None:
    assert image.added < LARGEST[image.service] * MEGABYTE
