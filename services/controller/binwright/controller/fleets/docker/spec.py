"""A slot as a container: its name, its labels, and what it is made from."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from binwright.controller.fleets.docker.engine import Obj
from binwright.fleets.labels import DOMAIN, GROUP_LABEL, SLOT_LABEL, labelled_slot
from binwright.protocol.model import Slot

PROJECT_LABEL, SPEC_LABEL = f"{DOMAIN}/project", f"{DOMAIN}/spec"
IMAGE_LABEL = f"{DOMAIN}/image"
# Of containers that version 0.1 made: they are recognised, so that an upgrade orphans none.
OLD_PROJECT_LABEL, OLD_SPEC_LABEL = f"{DOMAIN}/realm", f"{DOMAIN}/shape"
RESTART = "unless-stopped"  # the engine restarts it, whether or not a controller runs
PIDS = 512
_SECURITY = ("no-new-privileges:true",)
SLOT = "{slot}"
CONSUMER_COMMAND = ("--slot", SLOT)


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """What the containers of one group are made from.

    Attributes:
        project: Distinguishes them from the containers of another system on the same engine.
        group: The group's name.
        image: The image's name.
        network: As the engine names it; None: its default.
        volumes: `SOURCE:TARGET[:ro]` each.
        environment: The variables of every consumer.
        memory_bytes: Limit of a container's memory, bytes; None: no limit.
        cpus: Limit of a container's CPUs; None: no limit.
        grace_s: Seconds that a consumer has to end after SIGTERM.
        command: Of a container, in which `SLOT` stands for its slot; empty: the image's own.
    """

    project: str
    group: str
    image: str
    network: str | None = None
    volumes: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    memory_bytes: int | None = None
    cpus: float | None = None
    grace_s: float = 70.0
    command: tuple[str, ...] = CONSUMER_COMMAND

    def name(self, slot: Slot) -> str:
        """Return the name of a slot's container."""
        prefix = self.group if self.project == self.group else f"{self.project}-{self.group}"
        return f"{prefix}-consumer-{slot}"

    def labels(self) -> dict[str, str]:
        """Return the labels of all containers of the group."""
        return {PROJECT_LABEL: self.project, GROUP_LABEL: self.group}

    def owns(self, labels: Mapping[str, str]) -> bool:
        """Whether a container with these labels is the group's, in this project."""
        return labels.get(GROUP_LABEL) == self.group and self.in_project(labels)

    def in_project(self, labels: Mapping[str, str]) -> bool:
        """Whether a container with these labels is in the project, whichever its group."""
        return labels.get(PROJECT_LABEL, labels.get(OLD_PROJECT_LABEL)) == self.project

    @property
    def shares_network(self) -> bool:
        """Whether the network is another container's: then the engine lists none for these."""
        return (self.network or "").startswith("container:")

    def container(self, slot: Slot, image_id: str) -> Obj:
        """Return the body of the engine's request to create a slot's container."""
        own = {SLOT_LABEL: str(slot), SPEC_LABEL: self.digest, IMAGE_LABEL: image_id}
        labels = {**self.labels(), **own}
        command = [part.replace(SLOT, str(slot)) for part in self.command]
        return {**self._common(), **({"Cmd": command} if command else {}), "Labels": labels}

    @property
    def own_names(self) -> bool:
        """Whether each container has a host name of its own: the beginning of its id."""
        return not self.shares_network and self.network != "host"

    @property
    def digest(self) -> str:
        """Return a hash of all that the slots' containers have in common."""
        # A consumer's own command is left out, as it was before there were others.
        command = {} if self.command == CONSUMER_COMMAND else {"Cmd": self.command}
        packed = orjson.dumps({**self._common(), **command}, option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(packed).hexdigest()[:16]

    def _common(self) -> Obj:
        memory = self.memory_bytes or 0
        host: Obj = {
            "Memory": memory,
            "MemorySwap": memory,  # no swap: a consumer that swaps falls behind
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


@dataclass(frozen=True, slots=True)
class ListedContainer:
    """A container, as the engine lists it."""

    id: str
    name: str
    slot: Slot
    state: str  # created, running, paused, restarting, exited, removing, dead
    status: str  # the state as text, with an exit code
    image: str  # the image's id when the container was created
    spec: str  # `ContainerSpec.digest` when the container was created
    connected: bool

    @classmethod
    def from_listing(cls, listed: Obj) -> "ListedContainer | None":
        """Return a container of the engine's list; None if it has no valid slot label."""
        labels = listed["Labels"]
        if (slot := labelled_slot(labels)) is None:
            return None
        return cls(
            id=listed["Id"],
            name=listed["Names"][0].removeprefix("/") if listed.get("Names") else listed["Id"][:12],
            slot=slot,
            state=listed["State"],
            status=listed.get("Status", ""),
            image=labels.get(IMAGE_LABEL, ""),
            spec=labels.get(SPEC_LABEL, labels.get(OLD_SPEC_LABEL, "")),
            connected=bool((listed.get("NetworkSettings") or {}).get("Networks")),
        )


def describe_exit(found: ListedContainer, container: Obj | None) -> str:
    """Return how a container ended, as text; the engine may have restarted it since."""
    state = container["State"] if container else {}
    if container is None or state["Status"] != "restarting":
        return f"{found.name}: {found.status}"
    why = " (out of memory)" if state.get("OOMKilled") else ""
    return f"{found.name} ended with {state['ExitCode']}{why}, {container['RestartCount']} restarts"
