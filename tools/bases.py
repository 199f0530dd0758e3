"""Writes base images, and their digests, where they are used: `python -m tools.bases [--resolve]`.

`deploy/bases.toml` names them. With `--resolve` the registries are asked for the digests first, by
the container engine, with its mirrors and credentials.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import docker
import docker.errors
from tools.locks import ROOT

FILE = "deploy/bases.toml"
PYTHON, SPARK, KAFKA, HAPROXY = "python", "spark", "kafka", "haproxy"
USES: Mapping[str, str] = {
    "deploy/Dockerfile": PYTHON,
    "deploy/spark/Dockerfile": SPARK,
    "docker-compose.yml": KAFKA,
    "deploy/spark-tls/deployment.yaml": HAPROXY,
    "deploy/helm/binwright/values.yaml": HAPROXY,
}
"""A file -> the base image in it."""
_DIGEST = re.compile("sha256:[0-9a-f]{64}")

Resolve = Callable[[str], str]
"""Gives the digest that a registry has for an image; may raise `docker.errors.DockerException`."""


@dataclass(frozen=True, slots=True)
class Base:
    """An image of others."""

    image: str  # NAME:TAG
    digest: str  # empty: not known

    @property
    def reference(self) -> str:
        """What is pulled: by the digest, if it is known."""
        return f"{self.image}@{self.digest}" if self.digest else self.image


def bases(root: Path = ROOT) -> dict[str, Base]:
    """Return the base images of a checkout.

    Raises:
        ValueError: A digest is none.
    """
    read = tomllib.loads((root / FILE).read_text())
    found = {name: Base(**fields) for name, fields in read.items()}
    for name, base in found.items():
        if base.digest and not _DIGEST.fullmatch(base.digest):
            raise ValueError(f"{FILE}: {name}: not a digest: {base.digest}")
    return found


def pattern(image: str) -> re.Pattern[str]:
    """Return what finds an image, by whichever tag or digest."""
    name = re.escape(image.partition(":")[0])
    return re.compile(rf"(?<=[ =]){name}:[\w.-]+(?:@sha256:[0-9a-f]{{64}})?(?=\s|$)", re.MULTILINE)


def write_uses(root: Path = ROOT) -> None:
    """Write the references of `deploy/bases.toml` where they are used."""
    known = bases(root)
    for file, name in USES.items():
        path, base = root / file, known[name]
        path.write_text(pattern(base.image).sub(base.reference, path.read_text()))


def resolve(ask: Resolve, root: Path = ROOT) -> None:
    """Write the digests that registries have now into `deploy/bases.toml`."""
    found = {name: replace(base, digest=ask(base.image)) for name, base in bases(root).items()}
    text = (root / FILE).read_text()
    for base in found.values():
        entry = rf'(image = "{re.escape(base.image)}"\ndigest = )"[^"]*"'
        text = re.sub(entry, rf'\g<1>"{base.digest}"', text)
    (root / FILE).write_text(text)
    assert bases(root) == found


def digest_of(image: str) -> str:
    """Return the digest that the registry has for an image; nothing is pulled."""
    digest: str = docker.from_env().images.get_registry_data(image).id
    return digest


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resolve", action="store_true", help="ask the registries for digests")
    if parser.parse_args().resolve:
        try:
            resolve(digest_of)
        except docker.errors.DockerException as exc:
            sys.stderr.write(f"no digests: {exc}\n")
            return 1
    write_uses()
    return 0


if __name__ == "__main__":
    sys.exit(main())
