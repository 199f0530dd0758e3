"""Base images are named in one place, and used as it says."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.programs import ROOT
from tools.bases import FILE, USES, bases, pattern, resolve, write_uses

OURS = "binwright-"
DIGEST = f"sha256:{'a' * 64}"
DOCKERFILES = [ROOT / "deploy/Dockerfile", ROOT / "deploy/spark/Dockerfile"]


def images(part: Any) -> set[str]:
    """Return all values of keys `image`."""
    if isinstance(part, dict):
        own = {part["image"]} if isinstance(part.get("image"), str) else set()
        return own.union(*map(images, part.values()))
    return set().union(*map(images, part)) if isinstance(part, list) else set()


def test_every_image_is_built_from_a_base_of_the_one_place() -> None:
    found = bases()
    for path in DOCKERFILES:
        file = str(path.relative_to(ROOT))
        text = path.read_text()
        assert re.findall(r"^ARG BASE=(\S+)$", text, re.MULTILINE) == [found[USES[file]].reference]
        stages = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
        assert stages
        assert set(stages) == {"${BASE}"}, file


def test_every_image_of_others_that_runs_is_one_of_them() -> None:
    known = {base.reference for base in bases().values()}
    files = [
        *(ROOT / "deploy").glob("**/*.yaml"),
        ROOT / "docker-compose.yml",
    ]
    used: set[str] = set()
    for path in files:
        if "templates" in path.parts:
            continue
        for document in yaml.safe_load_all(path.read_text()):
            used |= {each for each in images(document) if not each.startswith(OURS)}
    assert used
    assert used <= known


def copied(target: Path) -> Path:
    for file in (FILE, *USES):
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, target / file)
    return target


def test_digests_of_a_registry_are_written_wherever_the_base_is_used(tmp_path: Path) -> None:
    root = copied(tmp_path)
    asked: list[str] = []

    def ask(image: str) -> str:
        asked.append(image)
        return DIGEST

    for _ in range(2):  # also over a digest
        resolve(ask, root)
        write_uses(root)
    assert asked == 2 * [base.image for base in bases().values()]
    for file, name in USES.items():
        reference = f"{bases()[name].image}@{DIGEST}"
        assert (root / file).read_text().count(reference) == 1, file
        assert len(pattern(bases()[name].image).findall((root / file).read_text())) == 1


def test_another_tag_is_written_as_well(tmp_path: Path) -> None:
    root = copied(tmp_path)
    file = root / FILE
    file.write_text(file.read_text().replace("haproxy:2.6", "haproxy:3.0"))
    write_uses(root)
    assert "image: haproxy:3.0\n" in (root / "deploy/spark-tls/deployment.yaml").read_text()


def test_what_is_no_digest_is_refused(tmp_path: Path) -> None:
    root = copied(tmp_path)
    file = root / FILE
    file.write_text(file.read_text().replace('digest = ""', 'digest = "sha256:12"', 1))
    with pytest.raises(ValueError, match="python: not a digest"):
        bases(root)
