"""For hooks: changes to modules that a process imports late, or never."""

from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

ModulePatch = Callable[[ModuleType], None]


class PatchOnImport(MetaPathFinder):
    """Changes modules behind their import; to be put before the other finders."""

    def __init__(self, changes: Mapping[str, ModulePatch]) -> None:
        self._changes = changes

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module that is to be changed; the others are found by others."""
        change = self._changes.get(fullname)
        spec = PathFinder.find_spec(fullname, path, target) if change else None
        if spec is None or spec.loader is None or change is None:
            return None
        loader: Any = spec.loader
        execute = loader.exec_module

        def changed(module: ModuleType) -> None:
            execute(module)
            change(module)

        loader.exec_module = changed
        return spec
