"""A process knows how much memory it may have, wherever it runs."""

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from binwright.runtime.memory import memory_limit

MIB = 1 << 20


def written(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


@pytest.fixture
def no_soft_limit() -> Iterator[int]:
    """Return what a process without control groups has; put back what a test limits."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    yield memory_limit(Path("/nowhere"))
    resource.setrlimit(resource.RLIMIT_DATA, before)


def test_the_least_limit_of_its_group_and_those_above_counts(tmp_path: Path) -> None:
    root = written(
        tmp_path,
        {
            "proc/self/cgroup": "0::/pods/consumer\n",
            "sys/fs/cgroup/memory.max": "max\n",
            "sys/fs/cgroup/pods/memory.max": f"{300 * MIB}\n",
            "sys/fs/cgroup/pods/consumer/memory.max": f"{768 * MIB}\n",
        },
    )
    assert memory_limit(root) == 300 * MIB


def test_in_a_container_the_top_counts(tmp_path: Path) -> None:
    """Its own group is the top there, and the path may be the host's."""
    root = written(
        tmp_path,
        {
            "proc/self/cgroup": "0::/kubepods/burstable/pod1/abc\n",
            "sys/fs/cgroup/memory.max": f"{768 * MIB}\n",
        },
    )
    assert memory_limit(root) == 768 * MIB


def test_groups_of_version_1_count(tmp_path: Path) -> None:
    unlimited = 0x7FFFFFFFFFFFF000
    root = written(
        tmp_path,
        {
            "proc/self/cgroup": "9:name=systemd:/\n4:cpu,memory:/docker/abc\n2:cpu:/docker/abc\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{unlimited}\n",
            "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": f"{512 * MIB}\n",
        },
    )
    assert memory_limit(root) == 512 * MIB


def test_without_limits_it_is_the_machines(tmp_path: Path, no_soft_limit: int) -> None:
    root = written(tmp_path, {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"})
    assert memory_limit(root) == no_soft_limit > 64 * MIB


def test_a_limit_of_the_process_counts(no_soft_limit: int) -> None:
    resource.setrlimit(
        resource.RLIMIT_DATA, (no_soft_limit // 2, resource.getrlimit(resource.RLIMIT_DATA)[1])
    )
    assert memory_limit(Path("/nowhere")) == no_soft_limit // 2
