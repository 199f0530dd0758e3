"""Runs protoc on files of others, within limits. A program of its own, which imports no other file.

Its arguments are those of protoc. It ends by 0, by 1 where protoc refuses, by `BROKEN` where it
cannot run protoc at all, or by a signal where a limit is reached.
"""

import ctypes
import resource
import sys
from contextlib import suppress
from pathlib import Path

BROKEN = 3
CPU_S = 5
MEMORY_BYTES, FILE_BYTES = 128 << 20, 8 << 20
FILES = 64
_NEW_USER, _NEW_NET = 0x10000000, 0x40000000  # of Linux' unshare


def main() -> int:
    """Compile; return the exit code."""
    try:
        import grpc_tools  # noqa: PLC0415 - its absence has a code
        from grpc_tools import protoc  # noqa: PLC0415
    except ImportError as exc:
        sys.stderr.write(f"{exc}\n")
        return BROKEN
    package = Path(grpc_tools.__file__).parent
    # What protoc brings itself comes first: nobody else says what a Timestamp is. What is installed
    # comes last: google/type, of which serializers register no references either.
    first, last = [package / "_proto", Path(__file__).parent / "protos"], package.parent
    _limit()
    paths = [f"-I{path}" for path in first]
    return int(protoc.main(["protoc", *paths, *sys.argv[1:], f"-I{last}"]))


def _limit() -> None:
    with suppress(ValueError):
        # The first limit sends SIGXCPU; the second SIGKILL, as others do, too.
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 1))
    for kind, most in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_NOFILE, FILES),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        with suppress(ValueError, OSError):  # a limit that macOS lacks, or one that is lower
            resource.setrlimit(kind, (most, most))
    # Without the right to it, as in most containers, the network stays: protoc does not use it.
    with suppress(AttributeError):
        ctypes.CDLL(None).unshare(_NEW_USER | _NEW_NET)


if __name__ == "__main__":
    sys.exit(main())
