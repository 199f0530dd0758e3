"""A slot as a container: its name, its labels, and what it is made from."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from binwright.controller.docker.engine import Obj
from binwright.core.model import Slot

DOMAIN = "binwright.dev"
REALM_LABEL, GROUP_LABEL = f"{DOMAIN}/realm", f"{DOMAIN}/group"
SLOT_LABEL, SHAPE_LABEL = f"{DOMAIN}/slot", f"{DOMAIN}/shape"
IMAGE_LABEL = f"{DOMAIN}/image"
RESTART = "unless-stopped"  # the engine keeps it up, whether or not a controller is there
PIDS = 512
_SECURITY = ("no-new-privileges:true",)


@dataclass(frozen=True, slots=True)
class Shape:
    """What the containers of one group are made from.

    Attributes:
        realm: Tells them from those of another system on the same engine.
        network: As the engine names it; None: its default.
        volumes: `SOURCE:TARGET[:ro]` each.
        environment: Of every consumer.
        memory_bytes: At most so much; None: whatever there is.
        cpus: At most so many; None: all.
        grace_s: What a consumer needs to end in good order.
    """

    realm: str
    group: str
    image: str
    network: str | None = None
    volumes: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    memory_bytes: int | None = None
    cpus: float | None = None
    grace_s: float = 70.0

    def name(self, slot: Slot) -> str:
        """Return the name of a slot's container."""
        prefix = self.group if self.realm == self.group else f"{self.realm}-{self.group}"
        return f"{prefix}-consumer-{slot}"

    def labels(self) -> dict[str, str]:
        """Return what all containers of the group bear."""
        return {REALM_LABEL: self.realm, GROUP_LABEL: self.group}

    @property
    def borrows(self) -> bool:
        """Whether the network is another container's, and not told of these."""
        return (self.network or "").startswith("container:")

    def container(self, slot: Slot, image_id: str) -> Obj:
        """Return what a slot's container is made from: the body of the engine's `create`."""
        own = {SLOT_LABEL: str(slot), SHAPE_LABEL: self.digest, IMAGE_LABEL: image_id}
        labels = {**self.labels(), **own}
        return {**self._common(), "Cmd": ["--slot", str(slot)], "Labels": labels}

    @property
    def own_names(self) -> bool:
        """Whether a container's host name is the beginning of its id, as the engine has it."""
        return not self.borrows and self.network != "host"

    @property
    def digest(self) -> str:
        """Return what differs when the containers of another shape would."""
        packed = orjson.dumps(self._common(), option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(packed).hexdigest()[:16]

    def _common(self) -> Obj:
        memory = self.memory_bytes or 0
        host: Obj = {
            "Memory": memory,
            "MemorySwap": memory,  # none: who swaps is late
            "NanoCpus": round((self.cpus or 0) * 1e9),
            "PidsLimit": PIDS,
            "Binds": list(self.volumes),
            "RestartPolicy": {"Name": RESTART},
            "ReadonlyRootfs": True,
            "Tmpfs": {"/tmp": ""},  # noqa: S108 - the container's own
            "CapDrop": ["ALL"],
            "SecurityOpt": list(_SECURITY),
        }
        if self.network is not None:
            host["NetworkMode"] = self.network
        return {
            "Image": self.image,
            "Env": [f"{name}={value}" for name, value in sorted(self.environment.items())],
            "StopTimeout": round(self.grace_s),
            "HostConfig": host,
        }


def slot_of(labels: Mapping[str, str]) -> Slot | None:
    """Return the slot by a container's labels; None if it is none's."""
    slot = labels.get(SLOT_LABEL, "")
    return Slot(int(slot)) if slot.isascii() and slot.isdigit() else None


@dataclass(frozen=True, slots=True)
class Found:
    """A container, as the engine lists it."""

    id: str
    name: str
    slot: Slot
    state: str  # created, running, paused, restarting, exited, removing, dead
    told: str  # the same for people, with an exit code
    image: str  # the id that the image had when this was made
    shape: str
    connected: bool

    @classmethod
    def of(cls, listed: Obj) -> "Found | None":
        """Return it; None if its label is no slot's."""
        labels = listed["Labels"]
        if (slot := slot_of(labels)) is None:
            return None
        return cls(
            id=listed["Id"],
            name=listed["Names"][0].removeprefix("/") if listed.get("Names") else listed["Id"][:12],
            slot=slot,
            state=listed["State"],
            told=listed.get("Status", ""),
            image=labels.get(IMAGE_LABEL, ""),
            shape=labels.get(SHAPE_LABEL, ""),
            connected=bool((listed.get("NetworkSettings") or {}).get("Networks")),
        )


def last_words(found: Found, container: Obj | None) -> str:
    """Return how a container ended, for people; the engine may have started it again by now."""
    state = container["State"] if container else {}
    if container is None or state["Status"] != "restarting":
        return f"{found.name}: {found.told}"
    why = " (out of memory)" if state.get("OOMKilled") else ""
    return f"{found.name} ended with {state['ExitCode']}{why}, {container['RestartCount']} restarts"
