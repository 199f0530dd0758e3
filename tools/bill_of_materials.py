"""The software bill of materials of a lock: CycloneDX, as JSON."""

from datetime import UTC, datetime
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from tools.locks import Locked, parse_lock

NAME = "binwright"


def bill_of_materials(lock: Path, version: str, license_: str, epoch: int) -> str:
    """Return the SBOM of what a lock installs; equal arguments give an equal one.

    It has the packages of all platforms and the hashes of all their files, as the lock does.

    Args:
        lock: A file of `requirements`.
        version: binwright's.
        license_: binwright's, an SPDX expression.
        epoch: The time of its making, in seconds since 1970.
    """
    root = Component(
        name=NAME,
        version=version,
        type=ComponentType.APPLICATION,
        bom_ref=NAME,
        licenses=[LicenseExpression(license_)],
    )
    text = lock.read_text()
    bom = Bom(
        components=map(_component, parse_lock(text)),
        serial_number=uuid5(NAMESPACE_URL, f"{NAME} {version} {epoch}\n{text}"),
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
