"""Finds what a JSON Schema refers to: within its own document, and in others that it is given."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urljoin

import orjson

from binwright.tables.schemas import SchemaRefused

Node = Any
"""A part of a document, as JSON has it."""
LONGEST_ADDRESS = 2_000  # characters; longer ones are none
_SHOWN = 80  # characters of a reference


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """A schema with an address of its own, by which what is within it refers to other parts."""

    address: str
    root: Node
    document: Node  # that holds it


class Documents:
    """The document of a schema, and those that it uses.

    Attributes:
        top: The schema's own.
    """

    def __init__(self, text: str, references: Mapping[str, str]) -> None:
        """Parse documents, of which those used have names; raise `SchemaRefused` for no JSON."""
        self._resources: dict[str, Resource] = {}
        self._anchors: dict[tuple[str, str], tuple[Node, Resource]] = {}
        self.top = self._add("", _parsed(text))
        base = address_of(self.top.root) or ""
        for name, each in references.items():
            resource = self._add(name, _parsed(each))
            self._resources.setdefault(_joined(base, name), resource)

    def find(self, reference: Node, within: Resource) -> tuple[Node, Resource]:
        """Return what a reference means within a resource; raise `SchemaRefused` for nothing."""
        if not isinstance(reference, str):
            raise SchemaRefused("refers to something by no text")
        address, _, fragment = reference[: 2 * LONGEST_ADDRESS].partition("#")
        resource: Resource | None = within
        if address:
            joined = _joined(within.address, address)
            resource = self._resources.get(address) or self._resources.get(joined)
        part = None if resource is None else self._part(resource, unquote(fragment))
        if part is None:
            raise SchemaRefused(f"refers to {reference[:_SHOWN]}, which is not there")
        return part

    def _part(self, resource: Resource, fragment: str) -> tuple[Node, Resource] | None:
        if not fragment:
            return resource.root, resource
        if not fragment.startswith("/"):
            return self._anchors.get((resource.address, fragment))
        steps = [each.replace("~1", "/").replace("~0", "~") for each in fragment[1:].split("/")]
        # A name that only looks like an address must not hide the document from what is within.
        return self._at(resource, steps) or self._at(self._around(resource), steps)

    def _at(self, resource: Resource, steps: list[str]) -> tuple[Node, Resource] | None:
        node = resource.root
        for step in steps:
            if isinstance(node, dict) and step in node:
                node = node[step]
            elif isinstance(node, list) and step.isdecimal() and int(step[:9]) < len(node):
                node = node[int(step[:9])]
            else:
                return None
            resource = self.entered(node, resource)
        return node, resource

    def _around(self, resource: Resource) -> Resource:
        return Resource(resource.address, resource.document, resource.document)

    def entered(self, node: Node, within: Resource) -> Resource:
        """Return the resource of a node: its own if it has an address, else that around it."""
        own = address_of(node)
        return (
            within if own is None else Resource(_joined(within.address, own), node, within.document)
        )

    def _add(self, name: str, document: Node) -> Resource:
        """Note all addresses and anchors of a document."""
        top = Resource(_joined(name, address_of(document) or ""), document, document)
        self._resources.setdefault(name, top)
        left = [(document, top)]
        while left:
            node, within = left.pop()
            if isinstance(node, dict):
                within = top if node is document else self.entered(node, within)
                self._resources.setdefault(within.address, within)
                for anchor in _anchors_of(node):
                    self._anchors.setdefault((within.address, anchor), (node, within))
                left += [(each, within) for each in node.values()]
            elif isinstance(node, list):
                left += [(each, within) for each in node]
        return top


def address_of(node: Node) -> str | None:
    """Return the address that a schema gives itself."""
    own = node.get("$id", node.get("id")) if isinstance(node, dict) else None
    address = own.partition("#")[0] if isinstance(own, str) else ""
    return address if 0 < len(address) <= LONGEST_ADDRESS else None


def _anchors_of(node: dict[str, Node]) -> list[str]:
    named = [node.get("$anchor"), node.get("$dynamicAnchor")]
    texts = [each for each in (node.get("$id"), node.get("id")) if isinstance(each, str)]
    named += [each[1:] for each in texts if each.startswith("#")]  # before 2019
    return [each for each in named if isinstance(each, str)]


def _parsed(text: str) -> Node:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as exc:
        raise SchemaRefused(f"is no JSON: {exc}"[:150]) from exc


def _joined(base: str, address: str) -> str:
    try:
        joined = urljoin(base, address)
    except ValueError:  # it only looks like one
        return address
    return joined if len(joined) <= LONGEST_ADDRESS else address
