"""Gives every decoder new hostile inputs, in turns, until the time is over."""

import argparse
import sys
import time
import traceback

from hypothesis import HealthCheck, given, settings
from tests.fuzz.limits import check
from tests.fuzz.mutations import hostile
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS


def turn(target: Target) -> None:
    """Decode some new inputs; raise for the smallest that fails."""

    @settings(
        max_examples=target.inputs // 2,
        deadline=None,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(hostile(target.corpus))
    def decode(content: bytes) -> None:
        check(target, content)

    decode()


def main() -> int:
    """Return 1 if any decoder failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long, default %(default)s")
    parser.add_argument("--only", default="", help="decoders whose names contain this")
    arguments = parser.parse_args()
    left = [name for name in TARGETS if arguments.only in name]
    end, inputs, failed = time.monotonic() + arguments.seconds, dict.fromkeys(left, 0), set[str]()
    while left and time.monotonic() < end:
        for name in list(left):
            if time.monotonic() >= end:
                break
            try:
                turn(TARGETS[name])
                inputs[name] += TARGETS[name].inputs // 2
            except Exception:  # noqa: BLE001 - any error is a finding
                sys.stderr.write(f"--- {name}\n")
                traceback.print_exc()
                failed.add(name)
                left.remove(name)
    for name, count in inputs.items():
        verdict = "FAILED" if name in failed else "ok"
        sys.stdout.write(f"{verdict:7}{count:7,} inputs  {name}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
