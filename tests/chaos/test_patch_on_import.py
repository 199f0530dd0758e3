"""Modules that are changed behind their import."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.chaos.patch_on_import import PatchOnImport


def louder(module: ModuleType) -> None:
    vars(module)["word"] = str(vars(module)["word"]).upper()


@pytest.fixture
def finder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "said.py").write_text("word = 'hello'")
    (tmp_path / "unsaid.py").write_text("word = 'hello'")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", [PatchOnImport({"said": louder}), *sys.meta_path])
    yield
    for name in ("said", "unsaid"):
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("finder")
def test_a_module_is_changed_once_it_is_imported_and_others_are_not() -> None:
    assert importlib.import_module("said").word == "HELLO"
    assert importlib.import_module("unsaid").word == "hello"


@pytest.mark.usefixtures("finder")
def test_a_module_is_not_imported_for_a_patch() -> None:
    assert "said" not in sys.modules
