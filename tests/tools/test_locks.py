"""The locks in `requirements`: complete for pyproject.toml, and nothing in them without a hash."""

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from tools.locks import EXTRAS, HEADER, REQUIREMENTS, ROOT, parse_lock, project, requirements_of

FILES = (*EXTRAS, "build")
ENTRY = f"aiokafka==0.14.0 \\\n    --hash=sha256:{'0' * 64}\n"


def locked(file: str) -> dict[str, str]:
    """Return the version of each package that a lock has."""
    text = (REQUIREMENTS / f"{file}.txt").read_text()
    return {package.name: package.version for package in parse_lock(text)}


def needed(requirement: Requirement) -> Iterator[Requirement]:
    """Yield what a requirement needs here, itself first; of packages that are installed."""
    found: dict[str, Requirement] = {}
    waiting = [requirement]
    while waiting:
        one = waiting.pop()
        if str(one) in found:
            continue
        found[str(one)] = one
        yield one
        try:
            own = requires(one.name) or []
        except PackageNotFoundError:
            continue
        for each in map(Requirement, own):
            extras = ({"extra": extra} for extra in (one.extras or {""}))
            if each.marker is None or any(map(each.marker.evaluate, extras)):
                waiting.append(each)


@pytest.mark.parametrize("file", FILES)
def test_a_lock_has_all_that_pyproject_requires_and_that_these_require(file: str) -> None:
    versions = locked(file)
    for named in requirements_of(file):
        for each in needed(Requirement(named)):
            version = versions.get(canonicalize_name(each.name))
            assert version is not None, f"{each}, because of {named}"
            assert each.specifier.contains(Version(version)), f"{each}, because of {named}"


def test_the_locks_agree_on_versions() -> None:
    agreed: dict[str, str] = {}
    for file in FILES:
        for name, version in locked(file).items():
            assert agreed.setdefault(name, version) == version, f"{name} in {file}"


def test_every_file_there_is_one_that_is_written() -> None:
    assert {path.stem for path in REQUIREMENTS.iterdir()} == set(FILES)


DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text()


def test_images_are_built_from_each_source_root() -> None:
    roots = {
        each.partition("/")[0]
        for each in project()["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    }
    copied = re.findall(r"^COPY (\w+) \1$", DOCKERFILE, re.MULTILINE)
    assert set(copied) == {"requirements", *roots}


def test_an_image_takes_only_what_its_lock_and_the_build_s_have() -> None:
    text = DOCKERFILE.replace("\\\n", " ")
    for fetching in re.findall(r"pip (?:install|wheel) [^&\n]+", text):
        assert "--require-hashes" in fetching or "--no-index" in fetching, fetching
    assert re.findall(r"-r requirements/(\S+)\.txt", text) == ["build", "${PROGRAM:?}"]
    programs = re.search(r"^# PROGRAM is (\w+), (\w+), (\w+), or (\w+):", text, re.MULTILINE)
    assert programs
    assert set(programs.groups()) < set(FILES)


@pytest.mark.parametrize(
    "line",
    [
        "aiokafka==0.14.0",
        "aiokafka>=0.14.0 \\\n    --hash=sha256:" + "0" * 64,
        "aiokafka==0.14.0 \\\n    --hash=md5:" + "0" * 32,
        "--index-url https://example.com/simple",
        "-r other.txt",
    ],
)
def test_a_line_without_a_version_or_a_hash_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="no package with a version and a hash"):
        parse_lock(f"{HEADER}{ENTRY}{line}\n")


def test_an_entry_has_its_marker_and_all_hashes() -> None:
    sums = tuple(digit * 64 for digit in "12")
    hashes = "".join(f" \\\n    --hash=sha256:{each}" for each in sums)
    entry = f"uvloop[dev,test]==1 ; sys_platform != 'win32'{hashes}\n"
    (first, second) = parse_lock(f"{HEADER}{ENTRY}{entry}")
    assert (first.name, first.version, first.marker) == ("aiokafka", "0.14.0", "")
    assert (second.name, second.version) == ("uvloop", "1")
    assert (second.marker, second.sha256) == ("sys_platform != 'win32'", sums)
