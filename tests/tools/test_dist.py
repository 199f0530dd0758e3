"""What `python -m tools.dist` builds: the same bytes everywhere, and all that runs."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from datetime import datetime
from pathlib import Path
from zipfile import ZipFile

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from tests.programs import ROOT
from tests.tools.checkout import DATE, git, make_checkout
from tools.bases import Base, bases
from tools.bill_of_materials import bill_of_jars
from tools.dist import IMAGES, INSTALLATIONS, SIGNED_FOR, NotBuilt, build, sign
from tools.locks import REQUIREMENTS, parse_lock, project

from binwright.local.jars import locked_jars

SOURCES = [
    ROOT / name for name in project()["tool"]["hatch"]["build"]["targets"]["wheel"]["sources"]
]
EPOCH = int(datetime.fromisoformat(DATE).timestamp())  # of the checkout's commit


def test_the_newest_dated_section_of_the_changelog_is_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    heading = next(h for h in re.findall(r"^## (.+)$", text, re.MULTILINE) if h != "Unreleased")
    version, _, date = heading.partition(", ")
    assert version == project()["project"]["version"]
    datetime.strptime(date, "%Y-%m-%d").astimezone()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkout(tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="module")
def built(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("built") / "dist"
    build(output, checkout)
    return output


def test_two_builds_in_two_directories_have_the_same_bytes(
    checkout: Path, built: Path, tmp_path: Path
) -> None:
    """By another process, of another clone, with other rights, times and hashes of strings."""
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(checkout), str(clone))
    for number, path in enumerate(sorted((clone / "shared").rglob("*.py"))):
        os.utime(path, (number, number))
        path.chmod(0o600)
    (clone / "shared/binwright/runtime/left_over.py").write_text("# not committed\n")
    again = tmp_path / "again"
    code = (
        "from pathlib import Path; from tools.dist import build;"
        f"build(Path({str(again)!r}), Path({str(clone)!r}))"
    )
    subprocess.run(
        (sys.executable, "-c", code),
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "SOURCE_DATE_EPOCH": "1"},
        umask=0o077,
        check=True,
        timeout=300,
    )
    files = sorted(path.name for path in built.iterdir())
    assert files == sorted(path.name for path in again.iterdir())
    for name in files:
        assert (built / name).read_bytes() == (again / name).read_bytes(), name


def test_changes_that_are_not_committed_are_refused(checkout: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(checkout), str(clone))
    (clone / "README.md").write_text("changed")
    with pytest.raises(NotBuilt, match=r"README\.md"):
        build(tmp_path / "dist", clone)
    assert not (tmp_path / "dist").exists()


def wheel(built: Path) -> ZipFile:
    (path,) = built.glob("*.whl")
    return ZipFile(path)


def test_the_wheel_has_every_file_of_every_package(checkout: Path, built: Path) -> None:
    tracked = git(checkout, "ls-files").splitlines()
    expected = {
        str((ROOT / name).relative_to(root))
        for root in SOURCES
        for name in tracked
        if (ROOT / name).is_relative_to(root / "binwright")
    }
    packed = {name for name in wheel(built).namelist() if ".dist-info/" not in name}
    assert packed == expected
    for name in ("streams/demo.json", "look/page/web/index.html", "local/binwright-landing.jar"):
        assert f"binwright/{name}" in packed


def test_the_source_builds_the_same_wheel(built: Path, tmp_path: Path) -> None:
    (source,) = built.glob("*.tar.gz")
    subprocess.run(("tar", "-xf", str(source), "-C", str(tmp_path)), check=True, timeout=60)
    (tree,) = tmp_path.iterdir()
    subprocess.run(
        (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "out")),
        cwd=tree,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH)},
        check=True,
        capture_output=True,
        timeout=120,
    )
    (again,) = (tmp_path / "out").iterdir()
    assert again.read_bytes() == (built / again.name).read_bytes()


def test_the_chart_has_the_manifests_to_which_it_links(built: Path) -> None:
    (path,) = built.glob("*-chart-*.tgz")
    with tarfile.open(path) as chart:
        assert all(each.isfile() for each in chart)
        packed = chart.extractfile("binwright/files/base/controller.yaml")
        assert packed is not None
        assert packed.read() == (ROOT / "deploy/base/controller.yaml").read_bytes()
        assert {"binwright/Chart.yaml", "binwright/templates/_helpers.tpl"} <= {*chart.getnames()}


def test_only_an_earlier_release_is_deleted(checkout: Path, tmp_path: Path) -> None:
    kept, earlier = tmp_path / "notes.txt", tmp_path / "binwright-0.0.1.tar.gz"
    signature = tmp_path / "SHA256SUMS.sig"
    for path in (kept, earlier, signature):
        path.touch()
    build(tmp_path, checkout)
    assert kept.exists()
    assert not earlier.exists()
    assert not signature.exists()
    assert "notes.txt" not in (tmp_path / "SHA256SUMS").read_text()


@pytest.mark.parametrize("file", INSTALLATIONS)
def test_an_sbom_is_valid_and_has_what_its_lock_has(built: Path, file: str) -> None:
    (path,) = built.glob(f"*-{file}.cdx.json")
    text = path.read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    found = json.loads(text)
    assert datetime.fromisoformat(found["metadata"]["timestamp"]).timestamp() == EPOCH
    packages = parse_lock((REQUIREMENTS / f"{file}.txt").read_text())
    assert {
        (
            each["purl"],
            tuple(sum_["content"] for sum_ in each["externalReferences"][0]["hashes"]),
        )
        for each in found["components"]
        if each["type"] == "library"
    } == {(f"pkg:pypi/{each.name}@{each.version}", each.sha256) for each in packages}
    root = found["metadata"]["component"]
    (needs,) = (each for each in found["dependencies"] if each["ref"] == root["bom-ref"])
    assert (root["name"], root["version"]) == ("binwright", project()["project"]["version"])
    image = ["python"] if file in IMAGES else []
    assert [each["name"] for each in found["components"] if each["type"] == "container"] == image
    assert len(needs["dependsOn"]) == len(packages) + len(image)


def test_the_sbom_of_spark_s_image_has_the_jars_of_its_locks_and_names_its_base(
    built: Path,
) -> None:
    (path,) = built.glob("*-spark.cdx.json")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(path.read_text()) is None
    components = json.loads(path.read_text())["components"]
    jars = {
        (each["purl"], each["hashes"][0]["content"])
        for each in components
        if each["type"] == "library"
    }
    assert jars == {
        (f"pkg:maven/{jar.organisation}/{jar.name}@{jar.revision}", jar.sha256)
        for lock in ("delta", "s3")
        for jar in locked_jars(lock)
    }
    (base,) = (each for each in components if each["type"] == "container")
    assert f"{base['name']}:{base['version']}" == bases()["spark"].image


def test_a_base_is_named_with_its_digest_where_that_is_known() -> None:
    digest = "a" * 64
    base = Base("spark:1", f"sha256:{digest}")
    (found,) = json.loads(bill_of_jars([], "1", "Apache-2.0", 0, base))["components"]
    assert found["bom-ref"] == f"spark:1@sha256:{digest}"
    assert found["hashes"] == [{"alg": "SHA-256", "content": digest}]


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A key that lives as long as the test."""
    return make_key(tmp_path / "key")


def make_key(path: Path) -> Path:
    command = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path))
    subprocess.run(command, check=True, timeout=60)
    return path


def verified(release: Path, key: Path) -> bool:
    """Verify a release as docs/how-to/install.md says, by the builder's public key."""
    public = key.with_suffix(".pub").read_text()
    allowed = key.with_name("allowed_signers")
    allowed.write_text(f'builder namespaces="{SIGNED_FOR}" {public}')
    page = (ROOT / "docs/how-to/install.md").read_text()
    (block,) = re.findall(r"```sh\n((?:(?!```).)*ssh-keygen -Y verify.*?)```", page, re.DOTALL)
    script = block.replace("allowed_signers", str(allowed)).replace("cd dist", f"cd {release}")
    done = subprocess.run(
        ("sh", "-ec", script), capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode == 0


def test_a_signed_release_is_verified_and_one_that_was_altered_is_refused(
    built: Path, key: Path, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    shutil.copytree(built, release)
    assert not verified(release, key)  # not signed
    sign(release, key)
    assert verified(release, key)
    assert not verified(release, make_key(tmp_path / "other"))

    (wheel,) = release.glob("*.whl")
    content = wheel.read_bytes()
    wheel.write_bytes(content[:-1] + b"!")
    assert not verified(release, key)  # the file has another sum
    sums = release / "SHA256SUMS"
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    sums.write_text(sums.read_text().replace(hashlib.sha256(content).hexdigest(), digest))
    assert not verified(release, key)  # the sums have another signature


def test_every_file_has_its_sum(built: Path) -> None:
    lines = (built / "SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, name in map(str.split, lines)}
    assert sums.keys() == {path.name for path in built.iterdir()} - {"SHA256SUMS"}
    for name, digest in sums.items():
        assert hashlib.sha256((built / name).read_bytes()).hexdigest() == digest
