"""A node with a real kubelet and containerd, in a network namespace of its own.

It uses Debian's containerd, runc and CNI plugins. One iptables rule replaces kube-proxy, because
pods need only the API server's service. There is no cluster DNS.
"""

import asyncio
import json
import os
import re
import shutil
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import psutil
from tests.deploy.kubernetes.plane import ControlPlane
from tests.programs import ProgramMissing

from binwright.local.child import Child, Command
from binwright.runtime.environment import clean_environment

NETWORK = "binwright-test"
NAMESPACE = Path("/run/netns") / NETWORK
HOST_SIDE, NODE_SIDE = "bw-test-host", "bw-test-node"
ADDRESS, NODE, PODS = "10.244.0.2", "10.244.0.1", "10.244.7.0/24"
API_SERVICE = "10.96.0.1"
PLUGINS = Path("/usr/lib/cni")
NAME = "node-1"  # one of the control plane's identities
PAUSE = "binwright-test-pause:1"
TOOLS = ("containerd", "ctr", "runc", "ip", "iptables", "nsenter", "umount", "mount")
_POD_NETWORK = re.compile(r"/netns/(cni-[0-9a-f-]+)")
CALL_S, IMPORT_S, END_S = 60.0, 300.0, 20.0


def check_prerequisites() -> None:
    """Return if a node can run here.

    Raises:
        ProgramMissing: It cannot; the message says why.
    """
    if os.geteuid() != 0:
        raise ProgramMissing("a kubelet needs root")
    if absent := [name for name in TOOLS if not shutil.which(name)]:
        raise ProgramMissing(f"not on this machine: {', '.join(absent)}")
    if absent := [name for name in ("bridge", "host-local") if not (PLUGINS / name).exists()]:
        raise ProgramMissing(f"no CNI plugins {', '.join(absent)} in {PLUGINS}")


async def run(*argv: str, timeout_s: float = CALL_S) -> str:
    """Run a program and return its output; raise `AssertionError` with its errors if it fails."""
    process = await asyncio.create_subprocess_exec(
        *argv, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(timeout_s):
            out, err = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
    assert process.returncode == 0, f"{' '.join(argv)}: {err.decode()[-1000:]}"
    return out.decode()


async def try_run(*argv: str) -> str:
    """Run a program, ignoring failures: for cleaning up what may be gone."""
    with suppress(AssertionError, TimeoutError):
        return await run(*argv)
    return ""


def _inside(*argv: str) -> tuple[str, ...]:
    # Not `ip netns exec`: it mounts /sys again, which hides the cgroups.
    return (shutil.which("nsenter") or "nsenter", f"--net={NAMESPACE}", *argv)


@asynccontextmanager
async def network() -> AsyncIterator[None]:
    """Create the network namespace, connected to this machine by a pair of devices."""
    await run("ip", "netns", "add", NETWORK)
    try:
        pair = ("type", "veth", "peer", "name", NODE_SIDE, "netns", NETWORK)
        await run("ip", "link", "add", HOST_SIDE, *pair)
        await run("ip", "addr", "add", f"{ADDRESS}/24", "dev", HOST_SIDE)
        await run("ip", "link", "set", HOST_SIDE, "up")
        await run("ip", "-n", NETWORK, "addr", "add", f"{NODE}/24", "dev", NODE_SIDE)
        for device in (NODE_SIDE, "lo"):
            await run("ip", "-n", NETWORK, "link", "set", device, "up")
        await run("ip", "-n", NETWORK, "route", "add", "default", "via", ADDRESS)
        await run(*_inside("sysctl", "-qw", "net.ipv4.ip_forward=1"))
        yield
    finally:
        await try_run("ip", "netns", "del", NETWORK)  # deletes the devices, too


class Node:
    """The kubelet and containerd, and the clean-up of what they leave."""

    def __init__(self, plane: ControlPlane, home: Path) -> None:
        self.plane, self.home = plane, home
        self.socket = home / "cri.sock"
        self._children: list[Child] = []

    async def start(self, images: Sequence[str]) -> None:
        """Start containerd, import these images from the engine, then start the kubelet."""
        for name in ("cni", "kubelet", "logs"):
            (self.home / name).mkdir(parents=True)
        (self.home / "cni" / "10-bridge.conflist").write_text(json.dumps(_pod_network()))
        (self.home / "containerd.toml").write_text(_containerd(self.home, self.socket))
        (self.home / "kubelet.json").write_text(json.dumps(_kubelet(self.home, self.socket)))
        containerd = self._spawn("containerd", "--config", str(self.home / "containerd.toml"))
        await containerd.wait_until_ready(self._containerd_responds, deadline_s=CALL_S)
        for image in images:
            await self._import(image)
        rule = ("-d", API_SERVICE, "-p", "tcp", "--dport", "443", "-j", "DNAT")
        target = ("--to-destination", f"{ADDRESS}:{self.plane.port}")
        await run(*_inside("iptables", "-t", "nat", "-A", "PREROUTING", *rule, *target))
        kubelet = self._spawn(
            str(self.plane.programs / "kubelet"),
            f"--config={self.home / 'kubelet.json'}",
            f"--kubeconfig={self.plane.kubeconfig(NAME)}",
            f"--root-dir={self.home / 'kubelet'}",
            f"--cert-dir={self.home / 'certs'}",
            f"--hostname-override={NAME}",
            f"--node-ip={NODE}",
        )
        await kubelet.wait_until_ready(self._node_is_ready, deadline_s=CALL_S)

    async def _import(self, image: str) -> None:
        packed = self.home / "image.tar"
        await run("docker", "save", "--output", str(packed), image, timeout_s=IMPORT_S)
        await run(*self._ctr("images", "import", str(packed)), timeout_s=IMPORT_S)
        packed.unlink()

    def _spawn(self, program: str, *arguments: str) -> Child:
        name = Path(program).name
        command = Command(
            title=name,
            argv=_inside(program, *arguments),
            directory=self.home,
            log=self.home / f"{name}.log",
            environment=clean_environment({}),
        )
        self._children.append(Child(command))
        return self._children[-1]

    def _ctr(self, *arguments: str) -> tuple[str, ...]:
        return ("ctr", "--address", str(self.socket), "--namespace", "k8s.io", *arguments)

    async def _containerd_responds(self) -> bool:
        return bool(await try_run(*self._ctr("version")))

    async def _node_is_ready(self) -> bool:
        path = "jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}"
        return "True" in await self.plane.kubectl("get", "nodes", "-o", path)

    async def stop(self) -> None:
        """End all containers and both programs, and remove their mounts and networks."""
        networks = self._pod_networks()
        for child in reversed(self._children[1:]):  # the kubelet, or it restarts containers
            await child.stop(grace_s=END_S)
        for task in (await try_run(*self._ctr("tasks", "ls", "-q"))).split():
            await try_run(*self._ctr("tasks", "kill", "--signal", "9", task))
            await try_run(*self._ctr("tasks", "delete", "--force", task))
        for container in (await try_run(*self._ctr("containers", "ls", "-q"))).split():
            await try_run(*self._ctr("containers", "rm", container))
        for child in self._children[:1]:
            await child.stop(grace_s=END_S)
        self._end_shims()
        for mount in self._mounts():
            await try_run("umount", "--lazy", mount)
        for name in networks:
            await try_run("ip", "netns", "del", name)

    def _pod_networks(self) -> set[str]:
        """Return the pods' network namespaces, which neither program removes at its end."""
        tasks = self.home / "cri" / "state" / "io.containerd.runtime.v2.task" / "k8s.io"
        configs = "".join(path.read_text() for path in tasks.glob("*/config.json"))
        return set(_POD_NETWORK.findall(configs))

    def _mounts(self) -> list[str]:
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        return sorted((m for m in mounts if m.startswith(f"{self.home}/")), reverse=True)

    def _end_shims(self) -> None:
        """Kill the shims that containerd leaves running, only those of this node's socket."""
        for process in psutil.process_iter(["name", "cmdline"]):
            is_shim = "containerd-shim" in (process.info["name"] or "")
            if is_shim and str(self.socket) in " ".join(process.info["cmdline"] or []):
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGKILL)


def _pod_network() -> dict[str, object]:
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "ipMasq": True,
        "ipam": {"type": "host-local", "subnet": PODS, "routes": [{"dst": "0.0.0.0/0"}]},
    }
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}


def _containerd(home: Path, socket: Path) -> str:
    # Without CAP_SYS_RESOURCE runc cannot lower a sandbox's OOM score, and would fail.
    return f"""\
version = 2
root = "{home}/cri/root"
state = "{home}/cri/state"
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/library/{PAUSE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{PLUGINS}"
    conf_dir = "{home}/cni"
"""


def _kubelet(home: Path, socket: Path) -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "address": NODE,
        "healthzPort": 0,
        "nodeStatusUpdateFrequency": "2s",  # the control plane soon takes it for lost
        "nodeLeaseDurationSeconds": 8,
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        "evictionHard": {},
        "podLogsDir": f"{home}/logs",
        "containerRuntimeEndpoint": f"unix://{socket}",
    }


@asynccontextmanager
async def run_node(plane: ControlPlane, home: Path, images: Sequence[str]) -> AsyncIterator[Node]:
    """Run the node inside of `network`; nothing of it is left at the end."""
    node = Node(plane, home)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(node.stop)
        await node.start(images)
        yield node
