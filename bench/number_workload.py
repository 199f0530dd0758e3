"""A workload without processes, for benches of the scaler."""

from collections.abc import Collection

from binwright.scaler.decide.assigning import Replica
from binwright.scaler.decide.members import Members
from binwright.scaler.decide.sizing import WorkloadStatus


class NumberWorkload:
    """Replicas that are a number."""

    def __init__(self, replicas: int) -> None:
        self.replicas = replicas

    def status(self) -> WorkloadStatus:
        return WorkloadStatus(replicas=self.replicas, ready=self.replicas)

    async def replicas_of(self, members: Members) -> dict[str, Replica]:
        del members
        return {}

    async def scale(self, replicas: int, ending: Collection[str] = ()) -> None:
        del ending
        self.replicas = replicas
