"""`python -m tests.chaos --seed N --faults K`: exit code 1 if a row is lost or doubled, or a
recovery is overdue."""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.table import Table
from tests.chaos.fault_schedule import LASTING_S, LONG_LASTING_S, Kind
from tests.chaos.landed_values import Comparison
from tests.chaos.pod_memory import PROC, PodMemory
from tests.chaos.scenario import RECOVERY_S, Scenario, ScenarioOptions
from tests.chaos.system_settings import COMPACT_FILES, FEWEST_TABLES, FRESHNESS_S, SystemShape

from binwright.cli.terminal import Console
from binwright.runtime.logs import configure_logging
from binwright.runtime.run import EXIT_FAILED, EXIT_OK, run


@contextmanager
def workplace(kept: Path | None) -> Iterator[Path]:
    """Give a directory: the one named, or one that is gone afterwards."""
    if kept is not None:
        kept.mkdir(parents=True)
        yield kept.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="binwright-chaos-", ignore_cleanup_errors=True) as made:
        yield Path(made)


def show(course: Scenario) -> Table:
    """Return the faults and their recoveries, for people."""
    table = Table(title=f"seed {course.options.seed}")
    for name in ("at s", "fault", "back after s", "recovered s", "others within s"):
        table.add_column(name, justify="left" if name == "fault" else "right")
    for one in course.injected_faults:
        call = f" ({one.call})" if one.call and one.call not in one.fault else ""
        beside = " (not alone)" if one.beside else ""
        numbers = (f"{value:.1f}" for value in (one.at_s, one.lasted_s, one.recovery_s))
        at, lasted, recovery = numbers
        others = "" if one.others_s is None else f"{one.others_s:.1f}"
        table.add_row(at, one.fault + call + beside, lasted, recovery, others)
    return table


def show_row_ages(course: Scenario) -> Table:
    """Return how old each table's rows were when they became readable, for people."""
    table = Table(title="age of rows when they became readable, s")
    for name in ("table", "rows", "p50", "p99", "max"):
        table.add_column(name, justify="left" if name == "table" else "right")
    for one in course.row_ages:
        ages = (one.p50_s, one.p99_s, one.max_s)
        table.add_row(one.topic, str(one.rows), *("" if a is None else f"{a:.1f}" for a in ages))
    return table


def verdict(course: Scenario) -> str:
    """Return the remaining lines of the summary."""
    longest = max((s.recovery_s for s in course.injected_faults), default=0.0)
    landed = course.audit.rows if course.audit else 0
    lines = [
        f"{len(course.injected_faults)} faults; the longest recovery took {longest:.1f} s",
        f"{course.produced} records written, {landed} rows landed",
        *([f"{course.helpers} helpers staged some of it"] if course.options.shape.split else ()),
        *(f"no process came to it: {fault}" for fault in course.missed),
        *(f"skipped: {why}" for why in course.skipped),
        *(course.audit.faults() if course.audit else ("the audit was not made",)),
        *(bombs(course.memory, course) if course.memory else ()),
        *(values(course.comparison) if course.comparison else ()),
        *([course.failure] if course.failure else []),
        "clean" if course.clean else "NOT CLEAN",
    ]
    return "\n".join(lines)


def bombs(memory: PodMemory, course: Scenario) -> Iterator[str]:
    """Yield the lines about values that would take gigabytes."""
    yield f"{course.bombs} bombs; the most memory of a consumer: {memory.peak_bytes >> 20} MiB"
    yield from memory.killed
    yield from course.bomb_faults


def values(found: Comparison) -> Iterator[str]:
    """Yield the lines about the values that landed."""
    bad = ", ".join(f"{number} {kind}" for kind, number in sorted(found.bad.items()))
    yield f"{found.versions} versions of schemas; {found.rows} rows compared; bad: {bad}"
    yield from found.differences


def _kind(name: str) -> Kind:
    try:
        return Kind[name.upper()]
    except KeyError:
        raise argparse.ArgumentTypeError(f"there is no fault {name!r}") from None


def main() -> int:
    """Run once, and print what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the same seed, the same faults")
    parser.add_argument("--faults", type=int, default=10, help="how many")
    parser.add_argument("--minutes", type=float, default=60.0, help="after so many no new fault")
    parser.add_argument(
        "--deadline", type=float, default=RECOVERY_S, help="a recovery that takes longer fails, s"
    )
    parser.add_argument("--aimed", action="store_true", help="only faults at named steps")
    parser.add_argument(
        "--kinds",
        nargs="+",
        type=_kind,
        default=(),
        metavar="KIND",
        help=f"these alone, in turn: {', '.join(kind.name.lower() for kind in Kind)}",
    )
    parser.add_argument(
        "--evolution", action="store_true", help="schemas evolve; kills at each step of that"
    )
    parser.add_argument(
        "--bombs",
        action="store_true",
        help="consumers have 768 MiB; values that would take gigabytes come all along",
    )
    parser.add_argument(
        "--split",
        action="store_true",
        help="one partition at twice a consumer's limit, which several stage; faults at its steps",
    )
    parser.add_argument("--skip", type=int, default=0, help="so many of the plan's first faults")
    parser.add_argument("--short", action="store_true", help="four chosen faults, for CI")
    parser.add_argument(
        "--long",
        action="store_true",
        help="Spark is away or frozen for 10 minutes, a table refused for 30, not one each",
    )
    parser.add_argument("--tables", type=int, default=FEWEST_TABLES, help="how many, 2 or more")
    parser.add_argument("--freshness", type=float, default=FRESHNESS_S, help="of all tables, s")
    parser.add_argument(
        "--compact", type=int, default=COMPACT_FILES, help="small files of a table, at most"
    )
    parser.add_argument("--cold", action="store_true", help="begin before the servers are warm")
    parser.add_argument("--keep", type=Path, help="keep tables and logs in this new directory")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    asked = parser.parse_args()
    if asked.keep is not None and asked.keep.exists():
        parser.error(f"--keep: {asked.keep} is there already")
    if asked.bombs and (asked.evolution or asked.split):
        parser.error("--bombs: not with --evolution or --split, which have tables of their own")
    if asked.bombs and not PROC.exists():
        parser.error("--bombs: only Linux tells how much memory a process has had")
    configure_logging("error", "console")
    console = Console(stderr=asked.json, log_path=False, soft_wrap=True)
    options = ScenarioOptions(
        seed=asked.seed,
        faults=asked.faults,
        minutes=asked.minutes,
        aimed_only=asked.aimed,
        kinds=tuple(asked.kinds),
        short=asked.short,
        evolution=asked.evolution,
        skip=asked.skip,
        lasting_s=LONG_LASTING_S if asked.long else LASTING_S,
        cold=asked.cold,
        deadline_s=asked.deadline,
        shape=SystemShape(
            tables=asked.tables,
            freshness_s=asked.freshness,
            compact_files=asked.compact,
            split=asked.split,
            bombs=asked.bombs,
        ),
    )
    with workplace(asked.keep) as directory:
        course = Scenario(options, directory, console.log)
        code = run(course.run)
    if asked.json:
        sys.stdout.write(json.dumps(course.facts(), indent=2) + "\n")
    else:
        console.print(show(course))
        console.print(show_row_ages(course))
        console.print(verdict(course))
    return code or (EXIT_OK if course.clean else EXIT_FAILED)


if __name__ == "__main__":
    sys.exit(main())
