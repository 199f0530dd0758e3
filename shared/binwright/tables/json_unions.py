"""Column types of values that several JSON Schemas describe.

A type is None where a schema allows no value but null, and `JSON` where it allows several types.
"""

from collections.abc import Callable, Sequence

from binwright.tables.columns import JSON, Array, Column, ColumnType, Map, Simple, Struct

Kinds = Sequence[ColumnType]
_TEXTS = frozenset(map(Simple, ("string", "timestamp", "date", "binary")))
_NUMBERS = frozenset(map(Simple, ("int", "bigint", "float", "double")))
_INTEGERS = frozenset(map(Simple, ("int", "bigint")))
_WIDE = {Simple("string"): 2, Simple("double"): 2, Simple("bigint"): 1}


def all_of(kinds: Sequence[ColumnType | None]) -> ColumnType | None:
    """Return the type of values that have all of these."""
    some = [kind for kind in kinds if kind is not None]
    return _both(some) if some else None


def _both(kinds: Kinds) -> ColumnType:
    """Return the type of values that have all of these types, the narrowest of scalar ones."""
    kinds = [kind for kind in kinds if kind != JSON] or kinds
    if len(kinds) == 1:
        return kinds[0]
    if structs := [kind for kind in kinds if isinstance(kind, Struct)]:
        return _merged(structs, _both)
    if parts := _parts(kinds):
        made, items = parts
        return made(_both(items))
    return min(kinds, key=lambda kind: _WIDE.get(kind, 0) if isinstance(kind, Simple) else 0)


def one_of(own: ColumnType | None, branches: Sequence[ColumnType | None]) -> ColumnType | None:
    """Return the type of values that have `own`, and one of these at least."""
    kinds = [kind for kind in branches if kind is not None]
    if isinstance(own, Struct):  # a branch may only say which fields must be there
        structs = [kind for kind in kinds if isinstance(kind, Struct)]
        return all_of([own, either(structs)]) if structs else own
    return all_of([own, either(kinds)]) if kinds else None if own == JSON else own


def either(kinds: Kinds) -> ColumnType:
    """Return the type of values that have one of these types: `JSON` if no other is of all."""
    distinct = [*dict.fromkeys(kinds)]
    if len(distinct) == 1:
        return distinct[0]
    structs = [kind for kind in distinct if isinstance(kind, Struct)]
    if len(structs) == len(distinct):
        return _merged(structs, either)
    if parts := _parts(distinct):
        made, items = parts
        kind = either(items)
        return JSON if kind == JSON else made(kind)
    if _TEXTS.issuperset(distinct):
        return Simple("string")
    if _NUMBERS.issuperset(distinct):
        return Simple("bigint" if _INTEGERS.issuperset(distinct) else "double")
    return JSON


def _merged(structs: Sequence[Struct], together: Callable[[Kinds], ColumnType]) -> ColumnType:
    """Return a struct of the fields of all, in order."""
    fields: dict[str, list[ColumnType]] = {}
    for struct in structs:
        for field in struct.fields:
            fields.setdefault(field.name, []).append(field.type)
    return Struct(tuple(Column(name, together(kinds)) for name, kinds in fields.items()))


def _parts(kinds: Kinds) -> tuple[Callable[[ColumnType], ColumnType], list[ColumnType]] | None:
    """Return what makes a type of lists, or maps, and their items, if all are such."""
    arrays = [kind.item for kind in kinds if isinstance(kind, Array)]
    maps = [kind.value for kind in kinds if isinstance(kind, Map)]
    if len(arrays) == len(kinds):
        return Array, arrays
    return (Map, maps) if len(maps) == len(kinds) else None
