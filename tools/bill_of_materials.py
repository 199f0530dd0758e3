"""The software bills of materials of locks and of Spark's image: CycloneDX, as JSON."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from tools.bases import Base
from tools.locks import Locked, parse_lock

from binwright.local.jars import Artifact

NAME = "binwright"


def bill_of_materials(
    lock: Path, version: str, license_: str, epoch: int, base: Base | None = None
) -> str:
    """Return the SBOM of what a lock installs; equal arguments give an equal one.

    It has the packages of all platforms and the hashes of all their files, as the lock does.

    Args:
        lock: A file of `requirements`.
        version: binwright's.
        license_: binwright's, an SPDX expression.
        epoch: The time of its making, in seconds since 1970.
        base: What the image is built from that has them; None: there is no image of it. Of its own
            packages the SBOM says nothing: that of the base does.
    """
    text = lock.read_text()
    components = map(_component, parse_lock(text))
    return _bill(components, text, version, license_, epoch, base)


def bill_of_jars(
    jars: Iterable[Artifact], version: str, license_: str, epoch: int, base: Base
) -> str:
    """Return the SBOM of an image that adds these jars to its base; else as `bill_of_materials`."""
    found = sorted(jars)
    return _bill(map(_jar, found), repr(found), version, license_, epoch, base)


def _bill(  # noqa: PLR0917 - what an SBOM has
    components: Iterable[Component],
    content: str,
    version: str,
    license_: str,
    epoch: int,
    base: Base | None,
) -> str:
    root = Component(
        name=NAME,
        version=version,
        type=ComponentType.APPLICATION,
        bom_ref=NAME,
        licenses=[LicenseExpression(license_)],
    )
    bases = () if base is None else (_container(base),)
    name = base.reference if base else ""
    bom = Bom(
        components=(*components, *bases),
        serial_number=uuid5(NAMESPACE_URL, f"{NAME} {version} {epoch} {name}\n{content}"),
    )
    bom.metadata.component = root
    bom.metadata.timestamp = datetime.fromtimestamp(epoch, UTC)
    bom.register_dependency(root, bom.components)
    return JsonV1Dot6(bom).output_as_string(indent=1) + "\n"


def _component(package: Locked) -> Component:
    url = PackageURL("pypi", name=package.name, version=package.version)
    files = ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION,
        url=XsUri(str(url)),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=sum_) for sum_ in package.sha256],
    )
    return Component(
        name=package.name,
        version=package.version,
        type=ComponentType.LIBRARY,
        purl=url,
        bom_ref=str(url),
        external_references=[files],
    )


def _jar(jar: Artifact) -> Component:
    url = PackageURL("maven", jar.organisation, jar.name, jar.revision)
    return Component(
        name=jar.name,
        group=jar.organisation,
        version=jar.revision,
        type=ComponentType.LIBRARY,
        purl=url,
        bom_ref=str(url),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=jar.sha256)],
    )


def _container(base: Base) -> Component:
    """Return the base image; without a digest it is known by its tag alone."""
    name, _, tag = base.image.partition(":")
    sum_ = base.digest.removeprefix("sha256:")
    return Component(
        name=name,
        version=tag,
        type=ComponentType.CONTAINER,
        bom_ref=base.reference,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=sum_)] if sum_ else [],
    )
