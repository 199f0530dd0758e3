"""Builds the assignor for Java: `python -m tools.assignor_jar --output DIRECTORY`.

It is compiled against the kafka-clients jar that the embedded broker has, for Java 11 and later.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from tests.programs import ROOT
from tools.java_jar import build_jar, print_progress

from binwright.local.kafka import ensure_kafka

SOURCES = ROOT / "apps" / "java" / "assignor"
NAME = "binwright-assignor.jar"
RELEASE = 11  # what kafka-clients 4 itself needs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("build"))
    output: Path = parser.parse_args().output
    _, jars = asyncio.run(ensure_kafka(print_progress))
    sys.stdout.write(f"{build_jar(SOURCES, output / NAME, jars, RELEASE)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
