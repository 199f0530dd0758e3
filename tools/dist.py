"""Builds what a release has, from a commit, into `dist`: `python -m tools.dist`.

The wheel and the source of all packages, the Helm chart, the locks of `requirements` that
installations need, and of each, and of Spark's image, an SBOM (CycloneDX). The same commit gives
the same bytes wherever it is built: only what is committed is taken, and all times are the
commit's. With `--sign KEY` the sums of all files are signed by the builder's key of OpenSSH.
"""

import argparse
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.bases import PYTHON, SPARK, bases
from tools.bill_of_materials import bill_of_jars, bill_of_materials
from tools.locks import DEVELOPMENT, EXTRAS, ROOT, parse_lock, project

from binwright.local import jars

INSTALLATIONS = ("build", *(file for file in EXTRAS if file not in {DEVELOPMENT, "quick"}))
"""The files of `requirements` that are for users."""
IMAGES = ("monitor", "controller", "consumer", "tools")
"""Those of them that an image has."""
JARS = ("delta", "s3")
"""The locks of the jars in Spark's image."""
STEP_S = 300.0
SUMS = "SHA256SUMS"
SIGNED_FOR = "binwright"
"""The namespace of signatures: one made for another purpose is not one of a release."""


class NotBuilt(Exception):
    """There is nothing to build from; says why, and what to do."""


def build(output: Path, source: Path = ROOT) -> None:
    """Build the last commit of the checkout `source` into the directory `output`.

    An earlier release there is deleted, and nothing else.

    Raises:
        NotBuilt: The checkout has changes that are not committed.
        subprocess.CalledProcessError: A step failed.
    """
    if changed := _run("git", "status", "--porcelain", "--untracked-files=no", cwd=source).strip():
        raise NotBuilt(f"not committed: commit or stash it, then build\n{changed.decode()}")
    epoch = int(_run("git", "log", "-1", "--format=%ct", cwd=source))
    output.mkdir(parents=True, exist_ok=True)
    for earlier in (*output.glob("binwright-*"), *output.glob(f"{SUMS}*")):
        earlier.unlink()
    with TemporaryDirectory(prefix="binwright-dist-") as place:
        tree, packed = Path(place, "tree"), Path(place, "tree.tar")
        tree.mkdir()
        _run("git", "archive", "HEAD", f"--output={packed}", cwd=source)
        _run("tar", "-xf", str(packed), "-C", str(tree))
        hatch = ("hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", str(output.absolute()))
        _run(sys.executable, "-m", *hatch, cwd=tree, environment={"SOURCE_DATE_EPOCH": str(epoch)})
        described, known = project(tree)["project"], bases(tree)
        for file in INSTALLATIONS:
            lock = tree / "requirements" / f"{file}.txt"
            copy = output / f"{described['name']}-{described['version']}-{file}.txt"
            shutil.copyfile(lock, copy)
            base = known[PYTHON] if file in IMAGES else None
            bill = bill_of_materials(lock, described["version"], described["license"], epoch, base)
            copy.with_suffix(".cdx.json").write_text(bill)
        bill = bill_of_jars(
            spark_jars(tree), described["version"], described["license"], epoch, known[SPARK]
        )
        spark = output / f"{described['name']}-{described['version']}-spark.cdx.json"
        spark.write_text(bill)
        chart = f"{described['name']}-chart-{described['version']}.tgz"
        pack_chart(tree / "deploy" / "helm" / described["name"], output / chart, epoch)
    files = sorted(output.glob("binwright-*"))
    sums = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    (output / SUMS).write_text("".join(sums))


def spark_jars(tree: Path) -> list[jars.Artifact]:
    """Return what the locks of a checkout have for Spark's image."""
    packages = parse_lock((tree / "requirements" / "demo.txt").read_text())
    (delta,) = (each.version for each in packages if each.name == "delta-spark")
    texts = ((tree / f"apps/binwright/local/{name}.lock").read_text() for name in JARS)
    return [jar for text in texts for jar in jars.parse_lock(text.replace(jars.DELTA, delta))]


def sign(output: Path, key: Path) -> None:
    """Sign the sums of a release that is built, by OpenSSH: the file SHA256SUMS.sig.

    Args:
        output: Its directory.
        key: The private key; or the public one of a key that an agent or a token has.

    Raises:
        subprocess.CalledProcessError: It is none, or its password is not given.
    """
    arguments = ("-Y", "sign", "-f", str(key.absolute()), "-n", SIGNED_FOR)
    _run("ssh-keygen", *arguments, str((output / SUMS).absolute()))


def pack_chart(chart: Path, target: Path, epoch: int) -> None:
    """Pack a chart for Helm; the manifests to which it links become files of it."""
    paths = (
        Path(directory, name)
        for directory, _, names in os.walk(chart, followlinks=True)
        for name in names
    )
    with (
        target.open("wb") as sink,
        gzip.GzipFile(filename="", mode="wb", fileobj=sink, mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode="w") as files,
    ):
        for path in sorted(paths):
            content = path.read_bytes()
            entry = tarfile.TarInfo(str(path.relative_to(chart.parent)))
            entry.size, entry.mtime = len(content), epoch
            files.addfile(entry, io.BytesIO(content))


def _run(*command: str, cwd: Path = ROOT, environment: Mapping[str, str] | None = None) -> bytes:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        check=True,
        timeout=STEP_S,
    )
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    parser.add_argument("--sign", type=Path, metavar="KEY", help="a key of OpenSSH, the builder's")
    arguments = parser.parse_args()
    output: Path = arguments.output
    try:
        build(output)
        if arguments.sign is not None:
            sign(output, arguments.sign)
    except NotBuilt as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    sys.stdout.write((output / SUMS).read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
