"""Lists and code in Markdown."""

from collections import Counter
from collections.abc import Collection, Iterable

Entry = tuple[str, tuple[str, ...], str]
"""A name as code, facts such as a type and a default, empty ones too, and what it means."""
MANY = 3
"""What stands in so many lists is described once, before them."""


def entries(found: Iterable[Entry]) -> str:
    """Return a list in Markdown, a line for each entry, its facts in parentheses."""
    lines = []
    for name, facts, meaning in found:
        text = "; ".join(filter(None, facts))
        head = f"{name} ({text})" if text else name
        lines.append(f"- {head}: {' '.join(meaning.split())}" if meaning else f"- {head}")
    return "".join(f"{line}\n" for line in lines)


def common(lists: Iterable[Iterable[Entry]]) -> list[Entry]:
    """Return what stands in `MANY` lists or more, as first found; of a name the most frequent."""
    counts = Counter(entry for each in lists for entry in each)
    chosen: dict[str, Entry] = {}
    for entry, number in counts.most_common():
        if number >= MANY:
            chosen.setdefault(entry[0], entry)
    return [entry for entry in counts if chosen.get(entry[0]) == entry]


def but_common(found: Collection[Entry], shared: Collection[Entry], where: str = "also") -> str:
    """Return a list without the entries that are described elsewhere, which it names."""
    also = ", ".join(name for name, *rest in found if (name, *rest) in shared)
    own = entries(entry for entry in found if entry not in shared)
    return f"{own}- {where}: {also}\n" if also else own


def code(text: str) -> str:
    """Return it as code; nothing if it is empty."""
    return f"`{text}`" if text else ""
