"""The tables of a topic, by the settings: each is a target, with a name and a form.

Targets of several topics may have one name: then they are one table, and have one form.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from binwright.protocol.errors import TableRefused
from binwright.protocol.names import BAD_SUFFIX, table_name
from binwright.tables.settings import RAW, TableSettings


@dataclass(frozen=True, slots=True)
class Target:
    """A table of a topic."""

    topic: str
    name: str  # of the table, unique in the lake; other topics may have it, too
    entry: TableSettings | None = field(default=None, hash=False)
    """Of the settings; None: there is none, it has raw records."""

    @property
    def decoded(self) -> TableSettings | None:
        """Return how values become columns; None: they land as bytes."""
        return None if self.entry is None or self.entry.format == RAW else self.entry

    @property
    def form(self) -> TableSettings | None:
        """Return all of its entry that decides what the table is; topics may share one form."""
        if self.entry is None:
            return None
        return self.entry.model_copy(update={"topics": (), "topic_patterns": (), "name": "{topic}"})

    @property
    def masking(self) -> str:
        """Return all on which it depends what of its records is masked; "": nothing is."""
        return "" if self.entry is None else self.entry.masking

    @property
    def by_day(self) -> bool:
        """Return whether its table is partitioned by the day of records."""
        return self.decoded is not None and self.decoded.partition_by is not None

    @property
    def has_keys(self) -> bool:
        """Return whether its table has one row of each key."""
        return self.entry is not None and self.entry.mode == "upsert"

    @property
    def format(self) -> str:
        """Return the format of its values."""
        return RAW if self.entry is None else self.entry.format


@dataclass(frozen=True)
class Targets:
    """The tables of each topic; looking one up costs what its own entries and the patterns cost."""

    tables: tuple[TableSettings, ...]

    @cached_property
    def _named(self) -> Mapping[str, Sequence[TableSettings]]:
        named: defaultdict[str, list[TableSettings]] = defaultdict(list)
        for entry in self.tables:
            for topic in entry.topics:
                named[topic].append(entry)
        return named

    @cached_property
    def _with_patterns(self) -> Sequence[TableSettings]:
        return [entry for entry in self.tables if entry.topic_patterns]

    def __call__(self, topic: str) -> tuple[Target, ...]:
        """Return a topic's tables, in the order of names; one of raw records without an entry.

        Raises:
            TableRefused: An entry's name for this topic is none that a table can have.
        """
        named = self._named.get(topic, ())
        matched = [e for e in self._with_patterns if not e.names(topic) and e.matches(topic)]
        targets: dict[str, Target] = {}
        for entry in (*named, *matched):
            name = entry.table_name(topic)
            try:
                name = name if name == topic else table_name(name)
            except ValueError as exc:
                raise TableRefused(f"topic {topic} has no table: {exc}") from exc
            targets.setdefault(name, Target(topic, name, entry))
        return tuple(targets[name] for name in sorted(targets)) or (Target(topic, topic),)


@dataclass(frozen=True, slots=True)
class TableNames:
    """Returns the names of a topic's tables; none where they have no valid ones."""

    targets: Targets
    _known: dict[str, tuple[str, ...]] = field(default_factory=dict, compare=False, repr=False)

    def __call__(self, topic: str) -> tuple[str, ...]:
        """Return the names, in order."""
        if (names := self._known.get(topic)) is None:
            try:
                names = tuple(target.name for target in self.targets(topic))
            except TableRefused:
                names = ()
            self._known[topic] = names
        return names


def forms_differ(targets: Sequence[Target]) -> str:
    """Return why targets of one name cannot be one table; empty if they can."""
    first, *others = targets
    for other in others:
        if other.entry is not first.entry and other.form != first.form:
            return (
                f"{first.name} would be the table of topics {first.topic} and {other.topic} in two "
                "forms: give both topics one entry in `tables`, or one of them another `name`"
            )
    return ""


def check_forms(targets: Sequence[Target]) -> None:
    """Raise `TableRefused` where targets of one name cannot be one table."""
    if reason := forms_differ(targets):
        raise TableRefused(reason)


def check_tables(tables: Sequence[TableSettings], topics: Iterable[str]) -> None:
    """Raise `ValueError` where settings of tables contradict each other, or topics that land.

    Topics that only patterns match are not known here: if two get one table's name in two forms,
    the table is refused when it is written.
    """
    places = Counter((t, entry.table_name(t)) for entry in tables for t in entry.topics)
    if twice := sorted({topic for (topic, _), number in places.items() if number > 1}):
        raise ValueError(
            f"tables: topics named twice: {', '.join(twice)}. Give a second table another `name`"
        )
    landed = {*topics, *(topic for topic, _ in places)}
    # A pattern may match a topic of which another one has the name of the bad records.
    bases = {topic.removesuffix(BAD_SUFFIX) for topic in landed}
    try:
        targets_of = Targets(tuple(tables))
        targets = {topic: targets_of(topic) for topic in sorted(landed | bases)}
    except TableRefused as exc:
        raise ValueError(f"tables: {exc}") from exc
    firsts: dict[str, Target] = {}
    for topic in sorted(landed):
        for target in targets[topic]:
            if reason := forms_differ([firsts.setdefault(target.name, target), target]):
                raise ValueError(f"tables: {reason}")
    decoded = {t.name: t.topic for every in targets.values() for t in every if t.decoded}
    for name, first in sorted(firsts.items()):
        if (base := name.removesuffix(BAD_SUFFIX)) != name and base in decoded:
            raise ValueError(
                f"topics: {first.topic} has the name of the table of bad records of "
                f"{decoded[base]}; land it with another lake.path"
            )
