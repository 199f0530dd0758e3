"""What the documentation says can be done can be done."""

import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from binwright.cli.main import OPTION, app
from binwright.inspect import settings_file
from binwright.runtime.settings.loading import load
from binwright.runtime.settings.programs import EVERY_NAME

from .pages import PAGES, ROOT, Block, anchors, blocks, links

MAP = ROOT / "docs" / "README.md"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    missing = []
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            missing.append(link)
    assert not missing


def test_every_page_of_the_docs_is_in_the_map() -> None:
    linked = {(ROOT / "docs" / link.partition("#")[0]).resolve() for link in links(MAP)}
    pages = {page for page in PAGES if page.is_relative_to(ROOT / "docs") and page != MAP}
    assert not {p for p in pages if p not in linked and p.parent not in linked}


@pytest.mark.parametrize("block", blocks("toml"), ids=str)
def test_every_settings_file_holds(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    values = tomllib.loads(block.text)
    kafka = values.get("kafka", {})
    by_token = kafka.keys() & {"sasl_token_file", "sasl_token_provider"}
    by_password = not by_token and kafka.get("sasl_mechanism") != "GSSAPI"
    if kafka.get("security_protocol", "").startswith("SASL") and by_password:
        monkeypatch.setenv("BINWRIGHT_KAFKA__SASL_USERNAME", "from a secret")
        monkeypatch.setenv("BINWRIGHT_KAFKA__SASL_PASSWORD", "from a secret")
    assert values.keys() <= EVERY_NAME
    for program in settings_file.PROGRAMS:
        load(program, **{n: v for n, v in values.items() if n in program.model_fields})


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_every_yaml_can_be_read(block: Block) -> None:
    assert yaml.safe_load(block.text)


def commands() -> list[tuple[str, list[str]]]:
    """Return every call of `binwright` in the docs, with its place; of the reference none.

    That is made from the command line itself, and has usage lines with placeholders.
    """
    found = []
    for block in blocks("sh"):
        if block.page.parent.name == "reference":
            continue
        for number, line in enumerate(block.text.replace("\\\n", " ").splitlines()):
            words = shlex.split(line, comments=True)
            while words and ("=" in words[0] or words[0] == "export"):
                words = words[1:]  # variables
            if words[:1] == ["binwright"]:
                found.append((f"{block}+{number}", words[1:]))
    return found


@pytest.mark.parametrize(("where", "words"), commands())
def test_every_command_has_these_options(where: str, words: list[str]) -> None:
    command: Any = typer.main.get_command(app)
    while hasattr(command, "get_command") and words and not words[0].startswith("-"):
        name, *words = words
        command = command.get_command(None, name)
        assert command is not None, f"{where}: no command {name}"
    known = {
        "--help",
        OPTION,
        *(option for parameter in command.params for option in parameter.opts),
    }
    unknown = {word.partition("=")[0] for word in words if word.startswith("-")} - known
    assert not unknown, where
