"""How much memory a value of Avro takes once it is read, known before it is.

A null and a record of nulls take no byte, and a boolean takes one: a byte of a list can be a record
of a thousand fields.
"""

from contextlib import suppress
from dataclasses import dataclass

from binwright.consumer.decode.avro_schemas import AvroSchema, Node, takes_nothing
from binwright.consumer.decode.one_by_one import Bad
from binwright.consumer.decode.registry_schemas import HEADER
from binwright.consumer.decode.value_memory import item_bytes, row_bytes, too_large
from binwright.tables.columns import Columns

_RECORD, _FIELD, _NAME_CHAR = 240, 60, 4  # bytes of memory, as it is read and as columns take it
_LIST, _ITEM, _MAP, _ENTRY, _BRANCH = 120, 30, 350, 300, 10
_NUMBER, _TEXT, _TEXT_BYTE = 40, 90, 9
_SIMPLE = {
    "null": (0, 0),
    "boolean": (0, 1),
    "int": (_NUMBER, 1),
    "long": (_NUMBER, 1),
    "float": (_NUMBER, 4),
    "double": (_NUMBER, 8),
}


@dataclass(frozen=True, slots=True)
class _Weight:
    """What the values of a type take.

    Attributes:
        memory: Bytes, without what is in lists, maps and texts.
        stored: The fewest bytes of one.
        dense: The most bytes of memory for each stored one, of a value that takes some.
        inside: The most for each stored byte of what is in its lists, maps and texts.
    """

    memory: int = 0
    stored: int = 0
    dense: int = 0
    inside: int = 0


_WITHIN_ITSELF = _Weight(0, 1, 0, 1 << 40)
"""What a type has within itself is known of single values only."""


class AvroMemory:
    """Estimates the memory of values of one schema.

    Attributes:
        row: What a value takes without what is in lists, maps and texts, bytes.
        byte: What a byte of it may take at most.
    """

    def __init__(self, schema: AvroSchema, columns: Columns) -> None:
        """Estimate for values that are read into these columns."""
        self._top, self._item = schema.top, item_bytes(columns)
        self._weights: dict[int, _Weight] = {}  # of types by identity, each once
        whole = self._weight(schema.top)
        self.row, self.byte = row_bytes(columns) + whole.memory, _TEXT_BYTE + whole.inside

    def fault(self, value: bytes, most: int) -> Bad | None:
        """Return a value, with its header, as bad if it takes more than `most` bytes."""
        if self.row + self.byte * len(value) <= most:
            return None
        need = _Walk(self._item, value, most).memory(self._top)
        return too_large(need, most) if need > most else None

    def _weight(self, node: Node) -> _Weight:
        if id(node) not in self._weights:
            self._weights[id(node)] = _WITHIN_ITSELF
            self._weights[id(node)] = self._made(node)
        return self._weights[id(node)]

    def _made(self, node: Node) -> _Weight:
        match node.kind:
            case "union":
                return self._union(node)
            case "record":
                return self._record(node)
            case "array":
                return self._list(node.parts[0], _LIST, _ITEM)
            case "map":
                return self._list(node.parts[0], _MAP, _ENTRY)
            case "string" | "bytes":
                return _Weight(_TEXT, 1, _TEXT + _TEXT_BYTE, _TEXT_BYTE)
        memory, stored = _simple(node)
        return _Weight(memory, stored, memory // max(stored, 1))

    def _record(self, node: Node) -> _Weight:
        parts = [*map(self._weight, node.fields.values())]
        memory = _of_record(node) + self._item + sum(part.memory for part in parts)
        stored = sum(part.stored for part in parts)
        inside = max((part.inside for part in parts), default=0)
        return _Weight(memory, stored, memory // max(stored, 1), inside)

    def _union(self, node: Node) -> _Weight:
        parts = [*map(self._weight, node.parts)]
        return _Weight(
            _BRANCH + max((part.memory for part in parts), default=0),
            1 + min((part.stored for part in parts), default=0),
            max(((_BRANCH + part.memory) // (1 + part.stored) for part in parts), default=0),
            max((part.inside for part in parts), default=0),
        )

    def _list(self, node: Node, empty: int, each: int) -> _Weight:
        item = self._weight(node)
        dense = (each + self._item) // max(item.stored, 1) + item.dense
        return _Weight(empty, 1, empty, max(dense, item.inside))


def _of_record(node: Node) -> int:
    """Return what a record takes besides its values; its names stand in it where it is JSON."""
    return _RECORD + sum(_FIELD + _NAME_CHAR * len(name) for name in node.fields)


def _simple(node: Node) -> tuple[int, int]:
    """Return the memory and the stored bytes of a type without parts."""
    match node.kind:
        case "enum":
            return _NUMBER + _NAME_CHAR * max(map(len, node.symbols), default=0), 1
        case "fixed":
            return _TEXT + _TEXT_BYTE * node.size, node.size
        case kind:
            return _SIMPLE[kind]


class _Exceeded(Exception):
    """The memory of a value is known to be more than it may take."""


class _Walk:
    """Goes through one value, and adds up what its parts take."""

    def __init__(self, item: int, value: bytes, most: int) -> None:
        self._item, self._value, self._most = item, value, most
        self._memory = 0
        self._nothing: dict[int, bool] = {}

    def memory(self, top: Node) -> int:
        """Return what the value takes; what is malformed is counted up to where it is so."""
        with suppress(IndexError, RecursionError, _Exceeded):
            self._skip(top, HEADER)
        return self._memory

    def _add(self, memory: int) -> None:
        self._memory += memory
        if self._memory > self._most:
            raise _Exceeded

    def _skip(self, node: Node, at: int) -> int:
        """Return where a value of a type ends; raise `IndexError` if it does not."""
        match node.kind:
            case "union":
                self._add(_BRANCH)
                branch, at = self._number(at)
                return self._skip(node.parts[branch], at)
            case "record":
                self._add(_of_record(node) + self._item)
                for each in node.fields.values():
                    at = self._skip(each, at)
                return at
            case "array" | "map":
                return self._items(node, at)
            case "string" | "bytes":
                return self._text(at)
            case "int" | "long" | "enum":
                self._add(_simple(node)[0])
                return self._number(at)[1]
        memory, size = _simple(node)
        self._add(memory)
        return self._behind(at + size)

    def _items(self, node: Node, at: int) -> int:
        item, is_map = node.parts[0], node.kind == "map"
        self._add(_MAP if is_map else _LIST)
        is_count = not is_map and takes_nothing(item, self._nothing)  # that is how it is read
        while True:
            count, at = self._number(at)
            if count == 0:
                return at
            if count < 0:
                count, (_, at) = -count, self._number(at)
            for _ in range(0 if is_count else count):
                self._add((_ENTRY if is_map else _ITEM) + self._item)
                at = self._skip(item, self._text(at) if is_map else at)

    def _text(self, at: int) -> int:
        size, at = self._number(at)
        self._add(_TEXT + _TEXT_BYTE * min(max(size, 0), len(self._value)))
        return self._behind(at + max(size, 0))

    def _behind(self, end: int) -> int:
        if end > len(self._value):
            raise IndexError
        return end

    def _number(self, at: int) -> tuple[int, int]:
        bits = shift = 0
        while True:
            byte = self._value[at]
            at += 1
            bits |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follow
                return (bits >> 1) ^ -(bits & 1), at
            shift += 7
            if shift > 63:  # noqa: PLR2004 - bits of a number
                raise IndexError
