"""The page of settings is what the settings are."""

from pathlib import Path

from pydantic import BaseModel

from binwright.cli.reference import page
from binwright.shell.settings import Section, Settings

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def test_the_page_shows_every_setting_as_it_is() -> None:
    """`binwright settings > docs/settings.md` writes it."""
    assert page() == PAGE.read_text()


def test_every_setting_says_what_it_is() -> None:
    every: tuple[type[BaseModel], ...] = (Settings, *Section.__subclasses__())
    for section in every:
        for name, field in section.model_fields.items():
            assert field.description or name in {"monitor", "controller", "consumer", "lake"}, name
