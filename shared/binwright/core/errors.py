"""Every error we raise on purpose, by who is at fault: the person, a peer, the world, or us."""

from collections.abc import Collection


class BinwrightError(Exception):
    """Root of the tree; never raised itself."""


class UserError(BinwrightError):
    """A person asked for what cannot be: say what is wrong, where, and what to do; exit 2."""


class SettingsError(UserError):
    """Settings that do not hold; the message lists every fault at once."""


class StreamError(UserError):
    """A file that is not a measurement stream."""


class PackingError(UserError):
    """A capacity, a rate or an algorithm's name is out of range."""


class MalformedMessage(BinwrightError):
    """A peer's bytes are not a message we know: count it, skip it, carry on."""

    def __init__(self, reason: str, payload: bytes) -> None:
        super().__init__(f"{reason} ({len(payload)} bytes)")
        self.reason, self.payload = reason, payload  # whole: cut when logging


class UnknownKind(MalformedMessage):
    """A well-formed message of a kind, or a version of one, that this software does not know."""


class WorldError(BinwrightError):
    """Something outside failed: back off and try again, within a deadline."""


class BrokerUnavailable(WorldError):
    """Kafka does not answer, or refuses."""


class TopicMissing(WorldError):
    """A topic that should be there is not."""


class RecordTooLarge(WorldError):
    """A topic does not take a record of this size."""


class LakeUnavailable(WorldError):
    """Spark does not answer, or the lake cannot be read or written."""


class WriteUnclear(WorldError):
    """A write ended without a verdict: send the same batch with the same version again."""


class WriteConflict(WorldError):
    """Somebody else committed under the same app id meanwhile: proves nothing, send it again."""


class TableRefused(WorldError):
    """A table does not take what is to be landed; only somebody's deed can change that."""


class StagedUnreadable(WorldError):
    """A staged file is gone or torn: its ranges must be read again."""

    def __init__(self, reason: str, files: Collection[str]) -> None:
        super().__init__(reason)
        self.files = frozenset(files)  # by name; none: it is not known which


class StagingUnavailable(WorldError):
    """The staging place does not take or give a file."""


class ClusterUnavailable(WorldError):
    """Kubernetes does not answer."""


class ClusterRefused(WorldError):
    """Kubernetes answers, with a status that is an error and a reason for people."""

    def __init__(self, status: int, reason: str, after_s: float = 0.0) -> None:
        super().__init__(f"{status}: {reason}")
        self.status, self.after_s = status, after_s  # seconds until it wants to be asked again


class TemplateRefused(WorldError):
    """The template of a consumer's pod cannot be used: what runs goes on, nothing new starts."""


class EngineUnavailable(WorldError):
    """The container engine does not answer."""


class EngineRefused(WorldError):
    """The container engine answers, with a status that is an error and a reason for people."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status}: {reason}")
        self.status = status


class EmbeddedError(WorldError):
    """An embedded broker, Spark server or one of their parts could not be had."""


class Superseded(BinwrightError):
    """A newer process has this slot, or this one was declared dead: it must exit."""


class IllegalTransition(BinwrightError):
    """Our own fault: a state machine was fed what its state cannot meet."""
