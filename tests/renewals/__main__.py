"""`python -m tests.renewals --minutes 30`: exit code 1 if a row is lost or doubled, or a process
was started again."""

import argparse
import sys
import tempfile
from pathlib import Path

from rich.table import Table
from tests.renewals.scenario import Lives, Renewals

from binwright.cli.terminal import Console
from binwright.runtime.logs import configure_logging
from binwright.runtime.run import EXIT_FAILED, EXIT_OK, run


def show(done: Renewals) -> Table:
    """Return what was renewed and what landed, for people."""
    table = Table(title="renewed under load")
    for name in ("group", "life, s", "renewals", "rows", "age p50, s", "p99", "max"):
        table.add_column(name, justify="left" if name == "group" else "right")
    for group, ages in zip(done.groups, done.row_ages, strict=True):
        found = (ages.p50_s, ages.p99_s, ages.max_s)
        shown = ("" if age is None else f"{age:.1f}" for age in found)
        life, renewals = f"{group.life_s:g}", str(group.renewals)
        table.add_row(group.settings.group, life, renewals, str(ages.rows), *shown)
    return table


def verdict(done: Renewals) -> str:
    """Return the remaining lines of the summary."""
    landed = done.audit.rows if done.audit else 0
    lines = [
        f"{done.records} records written, {landed} rows landed, {done.restarts} restarts of Kafka",
        *(f"{group} was restarted: {pids}" for group, pids in done.restarted.items()),
        *(done.audit.faults() if done.audit else ("the audit was not made",)),
        "clean" if done.clean else "NOT CLEAN",
    ]
    return "\n".join(lines)


def main() -> int:
    """Run once, and print what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.renewals", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long records are written")
    parser.add_argument("--certificate", type=float, default=60.0, help="its life, s")
    parser.add_argument("--token", type=float, default=20.0, help="its life, s")
    parser.add_argument("--password", type=float, default=60.0, help="its life, s")
    parser.add_argument("--restarts", type=int, default=2, help="of the broker")
    asked = parser.parse_args()
    configure_logging("error", "console")
    console = Console(log_path=False, soft_wrap=True)
    lives = Lives(
        load_s=60 * asked.minutes,
        certificate_s=asked.certificate,
        token_s=asked.token,
        password_s=asked.password,
        restarts=asked.restarts,
    )
    with tempfile.TemporaryDirectory(prefix="binwright-renewals-") as made:
        done = Renewals(lives, Path(made), console.log)
        code = run(done.run)
    if code != EXIT_OK:
        return code
    console.print(show(done))
    console.print(verdict(done))
    return EXIT_OK if done.clean else EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main())
