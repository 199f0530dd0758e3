"""Schemas are compiled in a child that has limits, and a schema that breaks it is refused."""

import base64
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2
from tests.consumer.decode.protobuf import proto

from binwright.consumer.decode import protobuf_compiler, protoc_child
from binwright.consumer.decode.protobuf_compiler import compiled
from binwright.consumer.decode.protobuf_schemas import ProtobufSchema
from binwright.protocol.errors import RegistryUnavailable
from binwright.tables.columns import columns_text
from binwright.tables.schemas import SchemaRefused

POINT = 'syntax = "proto3"; package geo; message Point { int32 x = 1; }'
LINE = """syntax = "proto3"; package geo; import "geo/point.proto";
message Line { Point a = 1; Point b = 2; }"""
PATH = (
    """syntax = "proto3"; import "geo/line.proto"; message Path { repeated geo.Line lines = 1; }"""
)


def columns(text: str, **imports: str) -> str:
    return columns_text(ProtobufSchema(compiled(text, imports)).columns(""))


def serialized(text: str, imports: dict[str, str]) -> str:
    """Return a schema as the serializers of some languages register it."""
    made = compiled(text, imports)
    files = descriptor_pb2.FileDescriptorSet.FromString(made.files).file
    (own,) = (each for each in files if each.name == made.root)
    own.name = "made_elsewhere.proto"
    return base64.b64encode(own.SerializeToString()).decode()


def test_a_schema_brings_the_files_that_it_imports() -> None:
    imports = {"geo/point.proto": POINT, "geo/line.proto": LINE}
    found = columns(PATH, **imports)
    assert found == "lines array<struct<a:struct<x:int>,b:struct<x:int>>>"


def test_a_schema_may_be_a_descriptor_and_so_may_what_it_imports() -> None:
    imports = {"geo/point.proto": POINT, "geo/line.proto": LINE}
    stored = {
        "geo/point.proto": serialized(POINT, {}),
        "geo/line.proto": serialized(LINE, {"geo/point.proto": POINT}),
    }
    expected = columns(PATH, **imports)
    assert columns(serialized(PATH, imports), **imports) == expected
    assert columns(serialized(PATH, imports), **stored) == expected
    assert columns(PATH, **stored) == expected


def test_a_file_of_the_root_s_name_may_be_imported() -> None:
    text = 'syntax = "proto3"; import "schema0.proto"; message M { geo.Point at = 1; }'
    assert columns(text, **{"schema0.proto": POINT}) == "at struct<x:int>"


def test_what_protoc_brings_is_not_what_a_registry_has() -> None:
    text = proto("google.protobuf.Timestamp at", head='import "google/protobuf/timestamp.proto";')
    theirs = 'syntax = "proto3"; package google.protobuf; message Timestamp { string text = 1; }'
    assert columns(text, **{"google/protobuf/timestamp.proto": theirs}) == "at timestamp"


def test_files_of_which_serializers_register_no_references_are_there() -> None:
    imports = ("confluent/meta", "confluent/types/decimal", "confluent/type/variant")
    head = "".join(f'import "{name}.proto";' for name in (*imports, "google/type/date"))
    fields = (
        'int32 id = 1 [(confluent.field_meta).tags = "PII"]; confluent.type.Decimal d = 2;'
        "google.type.Date at = 3; confluent.type.Variant v = 4;"
    )
    assert columns(f'syntax = "proto3"; {head} message M {{ {fields} }}') == (
        "id int, d struct<value:binary,precision:bigint,scale:int>, "
        "at struct<year:int,month:int,day:int>, v struct<metadata:binary,value:binary>"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "has no message"),
        ("{}", "is no Protobuf schema: schema0.proto:1:1: Expected top-level statement"),
        (proto("Nobody a"), 'is no Protobuf schema: schema0.proto:1:51: "Nobody" is not defined'),
        (proto("int32 a", head='import "not/there.proto";'),
         "is no Protobuf schema: not/there.proto: File not found"),
        (proto("int32 a", head='import "/etc/passwd";'), "is no Protobuf schema: /etc/passwd: "),
        (proto("int32 a", head='import "../errors";'), "is no Protobuf schema: ../errors: "),
        ("\0\ud800", "is no Protobuf schema: "),
        (base64.b64encode(b"\x22\x02\x08\x01").decode(), "is no Protobuf schema: "),
    ],
)  # fmt: skip
def test_what_is_no_schema_is_refused(text: str, reason: str) -> None:
    with pytest.raises(SchemaRefused) as refused:
        columns(text)
    assert str(refused.value).startswith(reason)
    assert len(str(refused.value)) <= 150


@pytest.mark.parametrize(
    "name",
    [
        "/a",
        "../a",
        "a/../b",
        "a//b",
        "a/",
        "",
        ".",
        "-I",
        "a\nb",
        "a:b",
        "a\\b",
        "x" * 101,
        "ä",
        "b",
    ],
)
def test_a_reference_that_is_no_file_is_refused(name: str) -> None:
    with pytest.raises(SchemaRefused, match=r"imports '.*', which is no name of a file"):
        compiled(proto("int32 a"), {name: POINT, "b/c": POINT})


def test_a_schema_that_takes_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protobuf_compiler, "MOST_BYTES", 1 << 20)
    with pytest.raises(SchemaRefused, match="has, with what it imports, more than 1 MB"):
        compiled(proto("int32 a"), {"a.proto": " " * (1 << 20)})


def test_a_schema_that_makes_protoc_crash_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for end, reason in (
        ("os.abort()", "takes protoc too much time or memory: it ended by SIGABRT"),
        ("os.kill(os.getpid(), signal.SIGXCPU)", "too much time or memory: it ended by SIGXCPU"),
    ):
        use_child(monkeypatch, tmp_path, end)
        with pytest.raises(SchemaRefused, match=reason):
            compiled(proto("int32 a"), {})


def use_child(monkeypatch: pytest.MonkeyPatch, directory: Path, body: str) -> None:
    """Run this in place of protoc."""
    script = directory / "child.py"
    script.write_text(f"import os, signal, sys, time\n{body}\n")
    monkeypatch.setattr(protoc_child, "__file__", str(script))


def test_a_child_that_cannot_be_run_is_not_the_schema_s_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(protobuf_compiler, "WAIT_S", 0.5)
    for child, reason in (
        ("sys.stderr.write('No module'); sys.exit(3)", "protoc cannot be run: No module"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "protoc cannot be run: it was killed"),
        ("time.sleep(60)", "protoc has not ended after 0.5 s"),
    ):
        use_child(monkeypatch, tmp_path, child)
        with pytest.raises(RegistryUnavailable, match=reason):
            compiled(proto("int32 a"), {})
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    with pytest.raises(RegistryUnavailable, match=r"protoc cannot be run: .*No such file"):
        compiled(proto("int32 a"), {})


def limited(body: str) -> subprocess.CompletedProcess[str]:
    """Run some lines within the limits of a child."""
    path = str(Path(protoc_child.__file__).parent)
    script = f"import sys; sys.path.insert(0, {path!r})\nimport protoc_child as child\n"
    argv = [sys.executable, "-I", "-c", f"{script}child.CPU_S = 1\nchild._limit()\n{body}"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems lack some of the limits")
def test_the_child_s_limits_hold(tmp_path: Path) -> None:
    assert "MemoryError" in limited("bytes(1 << 30)").stderr
    assert limited("while True: pass").returncode == -24  # SIGXCPU
    large = f"open({str(tmp_path / 'large')!r}, 'wb').write(bytes(1 << 25))"
    assert "File too large" in limited(large).stderr


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not have it")
def test_the_child_has_no_network_where_it_may_leave_it() -> None:
    may = "import ctypes; print(ctypes.CDLL(None).unshare(0x50000000))"
    done = subprocess.run([sys.executable, "-c", may], capture_output=True, text=True, check=True)
    if done.stdout != "0\n":
        pytest.skip("this system does not let it")
    assert limited("import socket; print(socket.if_nameindex())").stdout == "[(1, 'lo')]\n"


def test_the_child_has_no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BINWRIGHT_SECRET", "x")
    use_child(monkeypatch, tmp_path, "sys.exit('BINWRIGHT_SECRET' in os.environ or 'none')")
    with pytest.raises(SchemaRefused, match="is no Protobuf schema: none"):
        compiled(proto("int32 a"), {})


def test_nothing_is_left_of_a_compilation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    compiled(proto("int32 a"), {})
    with pytest.raises(SchemaRefused):
        compiled("no schema", {})
    assert list(tmp_path.iterdir()) == []
