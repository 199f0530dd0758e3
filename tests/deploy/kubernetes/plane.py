"""A real Kubernetes control plane on the loopback: etcd, API server, controllers, scheduler."""

import asyncio
import json
import secrets
import shutil
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from binwright.local.child import Child, Command, run_to_end
from binwright.local.server import HOST, reserve_port
from binwright.runtime.environment import clean_environment

READY_S = 90.0
KUBECTL_S = 150.0
# An API server needs 10 s for a graceful end; tests do not wait for it.
GRACE_S = 2.0
IDENTITIES = {  # role -> user, group
    "admin": ("admin", "system:masters"),
    "controllers": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
    "node-1": ("system:node:node-1", "system:nodes"),
    "node-2": ("system:node:node-2", "system:nodes"),
}
CONTROLLERS = (
    *("deployment", "replicaset", "garbage-collector", "namespace", "serviceaccount"),
    *("root-ca-certificate-publisher", "disruption", "node-lifecycle", "resourcequota"),
    *("persistentvolume-binder", "validatingadmissionpolicy-status"),
)
# With the default of 20 calls a second 50 Deployments take 11 s instead of 3 s.
CLIENT_LIMITS = ("--kube-api-qps=1000", "--kube-api-burst=1000")
NODE_LOST_S = 6


@dataclass
class ControlPlane:
    """A running control plane."""

    programs: Path
    home: Path
    port: int
    etcd_port: int
    peer_port: int
    address: str = HOST  # of the API server
    tokens: Mapping[str, str] = field(
        default_factory=lambda: {role: secrets.token_hex(16) for role in IDENTITIES}
    )
    children: dict[str, Child] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"https://{self.address}:{self.port}"

    @property
    def ca(self) -> Path:
        """The API server's self-signed certificate."""
        return self.home / "certs" / "apiserver.crt"

    def kubeconfig(self, role: str = "admin", token: str | None = None) -> Path:
        """Return a kubeconfig for this role, or for `token`."""
        path = self.home / f"{role}.kubeconfig"
        user = {"token": token or self.tokens[role]}
        cluster = {"server": self.url, "certificate-authority": str(self.ca)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        }
        path.write_text(json.dumps(config))
        return path

    async def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl as admin and return its output; raise `AssertionError` with its errors."""
        process = await asyncio.create_subprocess_exec(
            str(self.programs / "kubectl"),
            f"--kubeconfig={self.kubeconfig()}",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(KUBECTL_S):
            out, err = await process.communicate(stdin.encode() if stdin else None)
        assert process.returncode == 0, f"kubectl {' '.join(arguments)}: {err.decode()}"
        return out.decode()

    async def start(self) -> None:
        await self._etcd()
        await self.start_api_server()
        self._spawn(
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig('controllers')}",
            "--leader-elect=false",
            "--secure-port=0",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={self.home / 'accounts.key'}",
            f"--root-ca-file={self.ca}",
            f"--controllers={','.join(f'{name}-controller' for name in CONTROLLERS)}",
            "--node-monitor-period=1s",
            f"--node-monitor-grace-period={NODE_LOST_S}s",
            *CLIENT_LIMITS,
        )
        self._spawn(
            "kube-scheduler",
            f"--kubeconfig={self.kubeconfig('scheduler')}",
            "--leader-elect=false",
            "--secure-port=0",
            *CLIENT_LIMITS,
        )
        # Pods are refused before their namespace has its service account.
        path = "/api/v1/namespaces/default/serviceaccounts/default"
        manager = self.children["kube-controller-manager"]
        await manager.wait_until_ready(lambda: self._responds(path), deadline_s=READY_S)

    async def start_api_server(self) -> None:
        key = self.home / "accounts.key"
        child = self._spawn(
            "kube-apiserver",
            f"--etcd-servers=http://{HOST}:{self.etcd_port}",
            f"--bind-address={self.address}",
            f"--secure-port={self.port}",
            f"--cert-dir={self.home / 'certs'}",
            f"--token-auth-file={self.home / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            "--anonymous-auth=false",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={key}",
            f"--service-account-key-file={key}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--endpoint-reconciler-type=none",
            "--kubelet-preferred-address-types=InternalIP",
        )
        await child.wait_until_ready(lambda: self._responds("/readyz"), deadline_s=READY_S)

    async def kill_api_server(self) -> None:
        await self.children["kube-apiserver"].kill()

    async def stop(self) -> None:
        for child in reversed(self.children.values()):
            await child.stop(grace_s=GRACE_S)

    async def _etcd(self) -> None:
        client, peer = f"http://{HOST}:{self.etcd_port}", f"http://{HOST}:{self.peer_port}"
        self._spawn(
            "etcd",
            f"--data-dir={self.home / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        )

    def _spawn(self, name: str, *arguments: str) -> Child:
        command = Command(
            title=name,
            argv=(str(self.programs / name), *arguments),
            directory=self.home,
            log=self.home / f"{name}.log",
            environment=clean_environment({}),
        )
        self.children[name] = Child(command)
        return self.children[name]

    async def _responds(self, path: str) -> bool:
        try:
            trust = ssl.create_default_context(cafile=str(self.ca))
        except (FileNotFoundError, ssl.SSLError):
            return False  # the API server has not written it yet, or not all of it
        bearer = {"Authorization": f"Bearer {self.tokens['admin']}"}
        timeout = aiohttp.ClientTimeout(total=5)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, headers=bearer) as session,
                session.get(self.url + path, ssl=trust) as response,
            ):
                return response.ok
        except (aiohttp.ClientError, TimeoutError):
            return False


@asynccontextmanager
async def run_control_plane(
    programs: Path, home: Path, address: str = HOST
) -> AsyncIterator[ControlPlane]:
    """Run a control plane with its data and logs in `home`.

    Its API server listens on `address`, the other servers on the loopback.
    """
    tokens_file, key = home / "tokens.csv", home / "accounts.key"
    make_key = Command(
        title="openssl",
        argv=(shutil.which("openssl") or "openssl", "genrsa", "-out", str(key), "2048"),
        directory=home,
        log=home / "openssl.log",
        environment=clean_environment({}),
    )
    code, made = await run_to_end(make_key, deadline_s=60)
    assert code == 0, made.tail()
    async with AsyncExitStack() as stack:
        port, etcd, peer = (stack.enter_context(reserve_port(None)) for _ in range(3))
        plane = ControlPlane(programs, home, port, etcd, peer, address)
        tokens_file.touch(0o600)
        tokens_file.write_text(
            "".join(
                f'{plane.tokens[role]},{user},{role},"{group}"\n'
                for role, (user, group) in IDENTITIES.items()
            )
        )
        try:
            await plane.start()
            yield plane
        finally:
            await plane.stop()
