"""A template is a small mapping, or it is refused: whoever writes it can stop no other group."""

import asyncio
from dataclasses import fields
from typing import Any

import orjson
import pytest
import yaml

from binwright.controller.fleets.kubernetes.cluster import NamespaceObjects
from binwright.controller.fleets.kubernetes.template import (
    DEPTH,
    TEXT_BYTES,
    check_template,
    parse_template,
)
from binwright.kubernetes.objects import Obj
from binwright.protocol.errors import TemplateRefused

POD = {"spec": {"containers": [{"name": "consumer", "image": "x"}]}}
TEXT = yaml.safe_dump(POD)


def nested(depth: int) -> str:
    return f"{TEXT}metadata: {{annotations: {'{a: ' * depth}1{'}' * depth}}}"


def billion_laughs() -> str:
    lines = ["a: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    lines += [f"b{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 13)]
    return "\n".join([*lines, TEXT])


def test_a_template_is_read_and_has_the_same_digest_however_it_is_written() -> None:
    template = parse_template(TEXT, "here")
    assert template.pod == POD
    assert parse_template(orjson.dumps(POD).decode(), "there").digest == template.digest
    assert parse_template(TEXT.replace("x", "y"), "here").digest != template.digest


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (billion_laughs(), "aliases"),
        ("[" * 20_000, "nested deeper than 64"),
        ("- " * 20_000, "nested deeper than 64"),
        (nested(DEPTH), "nested deeper than 64"),
        (TEXT + "#" * TEXT_BYTES, f"{TEXT_BYTES} at most"),
        (f"{TEXT}metadata: {'1:' * 100_000}1", "longer than 100 characters"),
        (f"{TEXT}metadata: {{annotations: {{a: {'9' * 90}}}}}", "cannot be written as JSON"),
        (f"{TEXT}metadata: {{1: 2}}", "cannot be written as JSON"),
        (f"{TEXT}metadata: {{annotations: !!set {{a}}}}", "cannot be written as JSON"),
        (f"{TEXT}metadata: 2026-99-99", "not YAML"),
        (f"{TEXT}metadata: !!python/name:os.system", "not YAML"),
        (f"{TEXT}? [a]\n: b", "not YAML"),
        ("{", "not YAML"),
        ("", "expected a mapping"),
        (f"{TEXT}metadata: [1]", "must be mappings"),
        (f"{TEXT}metadata: {{labels: 7}}", "must be mappings"),
        ("spec: {containers: 7}", "spec.containers: must be a list"),
        ("spec: {containers: [{name: consumer, env: 7}]}", "env: must be a list"),
        ("spec: {containers: [{name: consumer, env: [7]}]}", "env: must be a list"),
        ("spec: {containers: [{name: consumer}], volumes: 7}", "spec.volumes: must be a list"),
        ("spec: {containers: [{name: other}]}", "one must be named `consumer`"),
    ],
)
def test_what_is_no_template_is_refused_with_the_reason(text: str, fault: str) -> None:
    with pytest.raises(TemplateRefused, match=fault):
        parse_template(text, "here")


def test_an_objects_own_template_is_checked_in_the_same_way() -> None:
    assert check_template(POD, "here").pod == POD
    with pytest.raises(TemplateRefused, match="cannot be written as JSON"):
        check_template({**POD, "metadata": {"annotations": {"a": {7}}}}, "here")


def test_a_nesting_within_the_bound_is_read() -> None:
    assert parse_template(nested(DEPTH - 3), "here").pod["spec"] == POD["spec"]


class ConfigMaps:
    """An informer that has one ConfigMap in each namespace."""

    def __init__(self, text: str) -> None:
        self.text = text

    def get(self, namespace: str, name: str) -> Obj:
        return {"metadata": {"namespace": namespace, "name": name}, "data": {"pod.yaml": self.text}}


async def test_other_groups_go_on_while_a_long_template_is_read() -> None:
    values: dict[str, Any] = {f.name: None for f in fields(NamespaceObjects)}
    text = TEXT + "".join(f"# {n}\n" for n in range(20_000))
    values |= {"templates": ConfigMaps(text), "template_name": "binwright-consumer"}
    reading = asyncio.create_task(NamespaceObjects(**values).template("team-a"))
    await asyncio.sleep(0)
    assert not reading.done()
    assert (await reading).pod == POD
