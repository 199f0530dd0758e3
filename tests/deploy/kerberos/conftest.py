"""One realm and one broker for all tests; gssapi, built once from its lock."""

import hashlib
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.deploy.kerberos.kerberos_broker import KerberosBroker, run_kerberos_broker
from tests.integration.conftest import BackgroundLoop, background_loop  # noqa: F401 - a fixture
from tests.programs import ProgramMissing, program_home, program_of_apt, run_program
from tools.locks import REQUIREMENTS

BUILD_S = 900.0
PROGRAMS = {
    "krb5kdc": "krb5-kdc",
    "kadmin.local": "krb5-admin-server",
    "kinit": "krb5-user",
    "krb5-config": "libkrb5-dev",
    "gcc": "gcc",
    "faketime": "faketime",
}
"""What the suite runs or compiles with, and the package that has it."""


def _get_programs() -> None:
    """Install what is missing, or fail with what to install."""
    try:
        for program, package in PROGRAMS.items():
            program_of_apt((program,), package)
        if not Path(sysconfig.get_path("include"), "Python.h").exists():
            program_of_apt(("python3-config",), "python3-dev")
    except ProgramMissing as exc:
        needed = " ".join([*PROGRAMS.values(), "python3-dev"])
        pytest.fail(f"{exc}; this suite needs the packages {needed}")


@pytest.fixture(scope="session")
def packages() -> Path:
    """A directory with what the extra `kerberos` installs, for PYTHONPATH."""
    _get_programs()
    lock = REQUIREMENTS / "kerberos.txt"
    digest = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()[:16]
    with program_home("gssapi", digest) as home:
        target, fresh = home / "packages", home / "fresh"
        if not target.is_dir():
            shutil.rmtree(fresh, ignore_errors=True)
            done = run_program(
                *(sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes"),
                *("--no-build-isolation", "--target", str(fresh), "-r", str(lock)),
                timeout_s=BUILD_S,
            )
            assert done.returncode == 0, done.stderr[-3000:]
            fresh.rename(target)
    return target


@pytest.fixture(scope="session")
def kerberos(
    background_loop: BackgroundLoop,  # noqa: F811 - the fixture
    packages: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[KerberosBroker]:
    """A broker, its realm, and how to connect to it."""
    directory = tmp_path_factory.mktemp("kerberos")
    with background_loop.entered(run_kerberos_broker(directory, packages)) as running:
        yield running
