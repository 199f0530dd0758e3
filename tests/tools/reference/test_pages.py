"""The reference pages say what the code says."""

import inspect
from pathlib import Path

import pytest
from pydantic import BaseModel
from tools.reference.__main__ import PAGES, page, reference
from tools.reference.errors import FAULTS

from binwright.inspect.settings_file import descriptions
from binwright.protocol import errors
from binwright.protocol.errors import BinwrightError, UserError
from binwright.protocol.section import Section
from binwright.runtime.settings.programs import ProgramSettings

DOCS = Path(__file__).parents[3] / "docs" / "reference"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_as_the_code_is(name: str) -> None:
    """`python -m tools.reference --output docs/reference` writes all of them."""
    assert page(name) == (DOCS / f"{name}.md").read_text()


def test_the_directory_has_these_pages_and_no_others() -> None:
    assert {path.stem for path in DOCS.glob("*.md")} == set(PAGES)


def test_one_command_writes_all_pages(tmp_path: Path) -> None:
    reference(output=tmp_path / "new")
    assert {path.stem for path in (tmp_path / "new").iterdir()} == set(PAGES)


def test_an_unknown_page_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UserError, match=r"no page 'nothing': there are settings, cli, messages"):
        page("nothing")


def test_every_setting_has_a_description() -> None:
    every: tuple[type[BaseModel], ...] = (
        *ProgramSettings.__subclasses__(),
        *Section.__subclasses__(),
    )
    sections = {"monitor", "controller", "consumer", "lake"}
    for section in every:
        undescribed = section.model_fields.keys() - descriptions(section).keys()
        assert undescribed <= sections, section


def test_every_error_names_a_cause_and_a_remedy() -> None:
    every = [e for e in vars(errors).values() if inspect.isclass(e) and e is not BinwrightError]
    own = [e for e in every if issubclass(e, BinwrightError)]
    for error in own:
        assert any(issubclass(error, root) for root in FAULTS), error
        assert inspect.cleandoc(error.__doc__ or "").count("\n\n") == 1, error
