"""Compiles Protobuf schemas by protoc, in a child process: the text is of others.

Protoc is a program in C++ of which each byte of a schema reaches the parser. A child that has no
environment, little time and memory, and no network where the system lets it leave that, can do no
more than fail.
"""

import re
import signal
import subprocess
import sys
from base64 import b64decode
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from threading import Lock

from binwright.consumer.decode import protoc_child
from binwright.protocol.errors import RegistryUnavailable
from binwright.tables.schemas import SchemaRefused

WAIT_S = 15.0  # for a child, which has `protoc_child.CPU_S` of a core
MOST_BYTES = 2 << 20  # of a schema and all that it imports
_PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}(/[A-Za-z0-9_.+-]{1,100}){0,9}")
"""Of an imported file."""
_ROOT, _SOURCES, _RESULT, _STORED = "schema{}.proto", "sources", "result", "stored"
_NO_ERROR = re.compile(r"WARNING: |W\d{4} |.*: warning: ")  # of the lines that protoc writes
_ONE_AT_ONCE = Lock()  # whatever schemas do, they take one child's memory
_ERRORS = 4_096  # bytes of what protoc writes that are read


@dataclass(frozen=True, slots=True)
class Compiled:
    """A schema as protoc has it."""

    root: str  # the name of its file
    files: bytes  # a `FileDescriptorSet`, of which each file follows those that it imports


def compiled(text: str, imports: Mapping[str, str]) -> Compiled:
    """Compile a schema: a `.proto` file, or the Base64 of a `FileDescriptorProto`.

    Args:
        text: The schema.
        imports: The text of each file that it imports, by the path in its `import`; not
            those of `google/protobuf`, `google/type` and `confluent`, which serializers
            register nowhere.

    Raises:
        SchemaRefused: It is not valid; says why.
        RegistryUnavailable: No child can be started, or it does not end: not the schema's fault.
    """
    if len(text) + sum(map(len, imports.values())) > MOST_BYTES:
        raise SchemaRefused(f"has, with what it imports, more than {MOST_BYTES >> 20} MB")
    root = next(name for n in range(len(imports) + 1) if (name := _ROOT.format(n)) not in imports)
    try:
        with _ONE_AT_ONCE, TemporaryDirectory(prefix="protoc-") as directory:
            return Compiled(root, _compile(Path(directory), root, {**imports, root: text}))
    except OSError as exc:
        raise RegistryUnavailable(f"protoc cannot be run: {exc}") from exc


def _compile(directory: Path, root: str, files: Mapping[str, str]) -> bytes:
    sources = directory / _SOURCES
    sources.mkdir()
    stored = b""
    for name, text in files.items():
        _check_path(name, files)
        if descriptor := _descriptor(text):
            # As a file of a `FileDescriptorSet`; of two names the last one counts.
            stored += _part(descriptor + _part(name.encode()))
        else:
            path = sources / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", errors="replace")
    (directory / _STORED).write_bytes(stored)
    _run(directory, root)
    return (directory / _RESULT).read_bytes()


def _descriptor(text: str) -> bytes:
    """Return a `FileDescriptorProto` that is stored as Base64; none: the schema is text."""
    try:
        return b64decode(text.strip(), validate=True)
    except ValueError:
        return b""


def _part(content: bytes) -> bytes:
    """Return the first field of a message, as it is written: its tag, its length and itself.

    Nothing of others is parsed here: what few bytes can become is a matter of the child's memory.
    """
    length, left = bytearray(), len(content)
    while left > 0x7F:  # noqa: PLR2004 - the most that fits in a byte of a varint
        length.append(left & 0x7F | 0x80)
        left >>= 7
    return b"\x0a" + bytes((*length, left)) + content


def _check_path(name: str, files: Collection[str]) -> None:
    """Raise `SchemaRefused` for what is no path of a file, or the directory of another."""
    inside = {str(parent) for parent in PurePosixPath(name).parents}
    if not _PATH.fullmatch(name) or ".." in name.split("/") or inside & {*files}:
        raise SchemaRefused(f"imports {name[:50]!r}, which is no name of a file")


def _run(directory: Path, root: str) -> None:
    arguments = ["--include_imports", f"--descriptor_set_in=../{_STORED}", "-I."]
    argv = [sys.executable, "-I", protoc_child.__file__, *arguments]
    with (directory / "errors").open("wb") as errors:
        try:
            done = subprocess.run(
                [*argv, f"--descriptor_set_out=../{_RESULT}", root],
                cwd=directory / _SOURCES,
                env={},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                timeout=WAIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise RegistryUnavailable(f"protoc has not ended after {WAIT_S:g} s") from None
    if done.returncode == 0:
        return
    with (directory / "errors").open("rb") as written:
        why = written.read(_ERRORS).decode(errors="replace")
    if done.returncode in (protoc_child.BROKEN, -signal.SIGKILL):  # the latter is no limit of ours
        raise RegistryUnavailable(f"protoc cannot be run: {why or 'it was killed'}"[:500])
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise SchemaRefused(f"takes protoc too much time or memory: it ended by {name}")
    lines = [line for line in why.splitlines() if line and not _NO_ERROR.match(line)]
    raise SchemaRefused(f"is no Protobuf schema: {'; '.join(lines)}"[:150])
