"""Where a table that others wrote has each record's topic, partition and offset."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from binwright.protocol.errors import UserError
from binwright.tables.columns import folded, parse_path, path_text

Path = tuple[str, ...]
"""Of a column, or of a field within structs."""
INTEGERS = frozenset(["tinyint", "smallint", "int", "bigint"])
TEXT = frozenset(["string"])
NEAR = 3
"""Names of columns that an error lists where none is like the one that is missing."""


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """The columns of a table that name a row's record."""

    partition: Path
    offset: Path
    topic: Path | None = None  # None: all rows are of one topic

    def check(self, types: Mapping[Path, str]) -> None:
        """Raise `UserError` where a column is missing, or has a type that it cannot have.

        Args:
            types: The columns of the table, and the fields within them, with Spark's types.
        """
        known = {tuple(map(folded, path)): kind for path, kind in types.items()}
        wanted = [("partition", self.partition, INTEGERS), ("offset", self.offset, INTEGERS)]
        if self.topic is not None:
            wanted.insert(0, ("topic", self.topic, TEXT))
        faults = []
        for name, path, kinds in wanted:
            kind = known.get(tuple(map(folded, path)))
            if kind is None:
                faults.append(f"there is no column {path_text(path)} ({_near(path, types)})")
            elif kind not in kinds:
                right = "a string" if kinds is TEXT else "an integer"
                faults.append(f"{path_text(path)} is {kind}, the {name} must be {right}")
        if faults:
            raise UserError(f"--columns: {'; '.join(faults)}")


def parse_record_columns(text: str) -> RecordColumns:
    """Read `partition=COLUMN,offset=COLUMN`, perhaps with `topic=COLUMN`, in any order.

    Raises:
        UserError: It is malformed, or names something else; says what is expected.
    """
    paths = dict[str, Path]()
    for part in text.split(","):
        name, sign, path = (each.strip() for each in part.partition("="))
        if not sign or name not in {"topic", "partition", "offset"} or name in paths:
            raise UserError(
                f"--columns: {part.strip()!r}: expected topic=…,partition=…,offset=… with names of "
                "columns, each once; without topic, if all rows are of one"
            )
        try:
            paths[name] = parse_path(path)
        except ValueError as exc:
            raise UserError(f"--columns: {name}: {exc}") from exc
    if missing := {"partition", "offset"} - paths.keys():
        raise UserError(f"--columns: names no {' and no '.join(sorted(missing))}")
    return RecordColumns(paths["partition"], paths["offset"], paths.get("topic"))


def _near(path: Path, types: Mapping[Path, str]) -> str:
    """Return the columns that a person may have meant: alike as a whole, or by their last name."""
    texts = {folded(path_text(each)): path_text(each) for each in types}
    near = get_close_matches(folded(path_text(path)), texts, NEAR)
    same = [path_text(each) for each in types if folded(each[-1]) == folded(path[-1])]
    found = list(dict.fromkeys([*same, *(texts[each] for each in near)]))
    if found:
        return f"perhaps {' or '.join(found[:NEAR])}"
    return f"the table has {', '.join(path_text(each) for each in types if len(each) == 1)}"
