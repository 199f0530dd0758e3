"""A pod's volumes, as directories, and the values that its variables refer to."""

import base64
import re
from pathlib import Path

from binwright.kubernetes.api import NOT_FOUND, Api
from binwright.kubernetes.objects import Obj
from binwright.protocol.errors import ClusterRefused, ClusterUnavailable

TOKEN_S = 3600


class Absent(Exception):
    """Something that a container needs does not exist (yet)."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason  # as `kubectl get pods` shows it


class Volumes:
    """One pod's volumes, created when they are first used."""

    def __init__(self, api: Api, raw: Obj, home: Path, address: str) -> None:
        self._api, self._raw, self._home, self._address = api, raw, home, address
        self._root = f"/api/v1/namespaces/{raw['metadata']['namespace']}"

    async def mounts(self, container: Obj) -> list[tuple[Path, str]]:
        """Return (source, target) of each mount; the targets exist."""
        named = {volume["name"]: volume for volume in self._raw["spec"].get("volumes", ())}
        found = []
        for mount in container.get("volumeMounts", ()):
            if mount["mountPath"] == "/tmp":  # noqa: S108 - the machine's own is used: programs may live there
                continue
            source = await self._directory(named[mount["name"]])
            if inner := mount.get("subPath"):
                source /= inner
            found.append((source, _mount_point(source, mount["mountPath"])))
        return found

    async def env_from(self, source: Obj) -> dict[str, str]:
        """Return the variables of an `envFrom` entry."""
        kind = "configMapRef" if "configMapRef" in source else "secretRef"
        data = await self._data(kind.removesuffix("Ref"), source[kind])
        return {source.get("prefix", "") + k: v.decode() for k, v in data.items()}

    async def value(self, origin: Obj) -> str | None:
        """Return the value of a `valueFrom`; None if it is optional and does not exist."""
        if field := origin.get("fieldRef"):
            return self._field(field["fieldPath"])
        kind = "configMapKeyRef" if "configMapKeyRef" in origin else "secretKeyRef"
        reference = origin[kind]
        found = (await self._data(kind.removesuffix("KeyRef"), reference)).get(reference["key"])
        if found is None and not reference.get("optional"):
            message = f"couldn't find key {reference['key']} in {reference['name']}"
            raise Absent("CreateContainerConfigError", message)
        return None if found is None else found.decode()

    def _field(self, path: str) -> str:
        meta, spec = self._raw["metadata"], self._raw["spec"]
        if found := re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path):
            return str(meta.get(found[1], {}).get(found[2], ""))
        known = {
            "status.podIP": self._address,
            "status.hostIP": "127.0.0.1",
            "spec.nodeName": spec["nodeName"],
            "spec.serviceAccountName": spec.get("serviceAccountName", "default"),
        }
        return known.get(path) or str(meta[path.removeprefix("metadata.")])

    async def _directory(self, volume: Obj) -> Path:
        directory = self._home / str(volume["name"])
        directory.mkdir(parents=True, exist_ok=True)
        sources = volume.get("projected", {}).get("sources") or [volume]
        for source in sources:
            for name, content in (await self._files(source)).items():
                (directory / name).parent.mkdir(parents=True, exist_ok=True)
                (directory / name).write_bytes(content)
        return directory

    async def _files(self, source: Obj) -> dict[str, bytes]:
        if spec := source.get("serviceAccountToken"):
            return {spec["path"]: await self._token(spec)}
        if spec := source.get("downwardAPI"):
            return {
                i["path"]: self._field(i["fieldRef"]["fieldPath"]).encode() for i in spec["items"]
            }
        for kind in ("configMap", "secret"):
            if spec := source.get(kind):
                data = await self._data(kind, spec)
                items = {i["key"]: i["path"] for i in spec.get("items", ())}
                return {items.get(k, k): v for k, v in data.items() if not items or k in items}
        assert "emptyDir" in source, f"a volume that this kubelet does not support: {source}"
        return {}

    async def _token(self, volume: Obj) -> bytes:
        meta, spec = self._raw["metadata"], self._raw["spec"]
        bound = {"kind": "Pod", "apiVersion": "v1", "name": meta["name"], "uid": meta["uid"]}
        audience = volume.get("audience")
        requested = {
            "audiences": [audience] if audience else [],
            "expirationSeconds": volume.get("expirationSeconds", TOKEN_S),
            "boundObjectRef": bound,
        }
        account = spec.get("serviceAccountName", "default")
        path = f"{self._root}/serviceaccounts/{account}/token"
        version = "authentication.k8s.io/v1"
        request = {"apiVersion": version, "kind": "TokenRequest", "spec": requested}
        created = await self._call("POST", path, request)
        return str(created["status"]["token"]).encode()

    async def _data(self, kind: str, reference: Obj) -> dict[str, bytes]:
        name = reference.get("name") or reference["secretName"]
        plural = {"configMap": "configmaps", "secret": "secrets"}[kind]
        try:
            found = await self._call("GET", f"{self._root}/{plural}/{name}")
        except Absent:
            if reference.get("optional"):
                return {}
            raise
        data: dict[str, str] = found.get("data") or {}
        if kind == "configMap":
            return {k: v.encode() for k, v in data.items()}
        return {k: base64.b64decode(v) for k, v in data.items()}

    async def _call(self, verb: str, path: str, body: Obj | None = None) -> Obj:
        try:
            if body is None:
                return await self._api.get(path)
            return await self._api.create(path, body)
        except ClusterRefused as exc:
            if exc.status == NOT_FOUND:
                raise Absent("CreateContainerConfigError", str(exc)) from exc
            raise Absent("CreateContainerError", f"{verb} {path}: {exc}") from exc
        except ClusterUnavailable as exc:
            raise Absent("CreateContainerError", str(exc)) from exc


def _mount_point(source: Path, target: str) -> str:
    """Return `target` after creating it on this machine if it does not exist."""
    path = Path(target)
    if source.is_dir():
        path.mkdir(parents=True, exist_ok=True)
    elif not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return target
