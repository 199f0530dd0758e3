"""The wheel without the checkout: what is installed with it, and that it runs."""

import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import pytest
from packaging.markers import Marker
from tests.deploy.dist.conftest import Installation
from tests.programs import LIST_PACKAGES
from tools.locks import parse_lock, project

pytestmark = [pytest.mark.dist, pytest.mark.integration]

READY_S, END_S = 300.0, 120.0
MARKERS = """
import json, os, platform, sys
print(json.dumps({
    "implementation_name": sys.implementation.name, "os_name": os.name,
    "platform_python_implementation": platform.python_implementation(),
    "sys_platform": sys.platform,
}))
"""


def output_of(installation: Installation, *command: str) -> str:
    """Run a command that must succeed; return its output."""
    done = installation.run(*command)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def named(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_bills_of_materials_are_what_is_installed(installation: Installation) -> None:
    """Without the packages of other platforms, which the locks mark as such."""
    found = json.loads(output_of(installation, "python", "-c", LIST_PACKAGES))
    installed = {(named(name), version) for name, version in found.items()}
    here = json.loads(output_of(installation, "python", "-c", MARKERS))
    listed, elsewhere = set(), set()
    for file in ("build", "demo"):
        bill = json.loads(installation.file(f"*-{file}.cdx.json").read_text())
        listed |= {(each["name"], each["version"]) for each in bill["components"]}
        for each in parse_lock(installation.file(f"*-{file}.txt").read_text()):
            if each.marker and not Marker(each.marker).evaluate(here):
                elsewhere.add((each.name, each.version))
    own = ("binwright", project()["project"]["version"])
    assert {each for each in installed if each[0] != "pip"} == (listed - elsewhere) | {own}


def test_the_lock_has_all_that_the_wheel_asks_for(installation: Installation) -> None:
    """Without an index: what is missing could not be had."""
    wheel = installation.file("*.whl")
    installation.pip("--no-index", "--force-reinstall", "--no-deps", str(wheel))
    installation.pip("--no-index", f"{wheel}[demo]")


def test_it_comes_from_the_wheel_alone(installation: Installation) -> None:
    code = "import binwright.local as l, binwright.consumer as c; print(*l.__path__, *c.__path__)"
    home = str(installation.python.parents[1])
    assert all(path.startswith(home) for path in output_of(installation, "python", "-c", code).split())
    version = project()["project"]["version"]
    assert output_of(installation, "binwright", "--version") == f"binwright {version}\n"


def test_the_demo_lands_every_record_once(installation: Installation) -> None:
    facts = json.loads(
        output_of(installation, "binwright", "demo", "--minutes", "0.5", "--speed", "8", "--json")
    )
    assert facts["clean"] is True
    assert facts["landed_rows"] == facts["produced_records"] > 1_000
    assert not list(installation.directory.iterdir())


def wait_until(condition: Callable[[], bool], patience_s: float, log: str) -> None:
    deadline = monotonic() + patience_s
    while not condition():
        assert monotonic() < deadline, log
        sleep(0.2)


@contextmanager
def running_system(installation: Installation) -> Iterator[str]:
    """Run `binwright up`; yield what it printed when it was ready."""
    log = installation.directory.parent / "up.log"
    program = str(installation.python.with_name("binwright"))
    with log.open("w") as sink:
        process = subprocess.Popen(
            (program, "up", "--topics", "orders", "--lake", "lake"),
            cwd=installation.directory,
            env=dict(installation.environment),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until(
            lambda: "page: http" in log.read_text() or process.poll() is not None,
            READY_S,
            str(log),
        )
        assert process.poll() is None, log.read_text()
        yield log.read_text()
        process.send_signal(signal.SIGINT)
        assert process.wait(END_S) == 0, log.read_text()
    finally:
        process.kill()
        process.wait(END_S)


def addresses(text: str) -> dict[str, str]:
    """Return what `up` prints as `name: value`."""
    return dict(
        re.findall(r"^(Kafka|Spark|Spark's token|page): (?:in )?(\S+)$", text, re.MULTILINE)
    )


def test_a_person_starts_a_system_and_looks_at_it(installation: Installation) -> None:
    """`up`, `load`, `init`, `doctor` and `status`: each has the files that it reads."""
    with running_system(installation) as printed:
        found = addresses(printed)
        kafka = ("--bootstrap-servers", found["Kafka"])
        output_of(installation, "binwright", "load", *kafka, "--topics", "orders", "--minutes", "0.1")
        lake = str(installation.directory / "lake")
        output_of(installation, "binwright", "init", *kafka, "--topics", "orders", "--lake", lake)
        written = installation.directory / "binwright.toml"
        assert found["Kafka"] in written.read_text()
        checked = installation.run(
            *("binwright", "doctor", "--settings", written.name, "--json"),
            *("--spark", found["Spark"]),
            BINWRIGHT_LAKE__TOKEN_FILE=found["Spark's token"],
        )
        assert json.loads(checked.stdout)["ok"], checked.stdout
        (group,) = json.loads(output_of(installation, "binwright", "status", "--json", *kafka))
        assert group["consumers"]
        table = Path(lake, "orders", "_delta_log")
        wait_until(table.is_dir, READY_S, printed)
