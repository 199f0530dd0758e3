"""Every error that is raised on purpose, by who is at fault: a person, a peer, the world, or us.

`docs/reference/errors.md` is made from the docstrings: what is wrong, then what to do.
"""

from collections.abc import Collection


class BinwrightError(Exception):
    """Root of the tree; never raised itself."""


class UserError(BinwrightError):
    """A person asks for something that cannot be: the message says what, where, and what to do.

    Do what the message says.
    """


class SettingsError(UserError):
    """Settings are wrong; the message lists every fault at once.

    Correct the settings file or the environment variable that the message names.
    """


class ForeignTopic(UserError):
    """A topic has the name of one of binwright's, and was made and written by others.

    Give the group, or the setting that names the topic, another name; nothing was changed.
    """


class StreamError(UserError):
    """A file or table is neither a stream nor a recording, or cannot be read or written.

    Name what `binwright record`, `generate` or `convert` wrote; the message names the place.
    """


class PackingError(UserError):
    """A capacity, a rate or the name of a packing is out of range.

    Correct `controller.packing`, or the option that the message names.
    """


class BalanceError(UserError):
    """The description of a cluster, or what is asked of a plan for its brokers, contradicts itself.

    Correct what the message lists.
    """


class MalformedMessage(BinwrightError):
    """A record on a control topic is not a message; it is logged and skipped.

    Find out who writes to the topic: only binwright should have the right to.
    """

    def __init__(self, reason: str, payload: bytes) -> None:
        super().__init__(f"{reason} ({len(payload)} bytes)")
        self.reason, self.payload = reason, payload  # whole: cut when logging


class UnknownKind(MalformedMessage):
    """A message has a kind, or a version of one, that this software does not know; it is skipped.

    Finish the upgrade: a newer process writes what an older one does not read.
    """


class ExternalError(BinwrightError):
    """Something outside the process failed; services try again, ever less often.

    Repair what the message names; nothing has to be restarted afterwards.
    """


class PlacementError(UserError):
    """A placement of replicas is unsafe, cannot be read, or does not fit the cluster.

    Correct the plan or the cluster as the message says; nothing was moved.
    """


class BrokerUnavailable(ExternalError):
    """Kafka does not answer, or refuses a request.

    Check the brokers, `kafka.bootstrap_servers`, the password and the ACLs.
    """


class TopicMissing(ExternalError):
    """A topic that should exist does not.

    Create it, or grant the right to describe it: Kafka hides topics from others.
    """


class RangeRefused(ExternalError):
    """A consumer cannot read a range of a split partition, or of before a table's beginning, now.

    Nothing, unless it happens again and again: the log of the consumer says why.
    """


class ReassignmentRefused(ExternalError):
    """Kafka refuses to describe or move replicas, or to change a configuration, and says why.

    Grant the right that it names (DESCRIBE or ALTER on the cluster, ALTER_CONFIGS on topics and the
    cluster).
    """


class RecordTooLarge(ExternalError):
    """A topic does not take a record of this size.

    Raise `max.message.bytes` of the topic to at least 10,000.
    """


class LakeUnavailable(ExternalError):
    """Spark does not answer, or the lake cannot be read or written.

    Check the Connect server of `lake.spark`, its token, and its rights on `lake.path`.
    """


class WriteUnclear(ExternalError):
    """A commit ended without a verdict; the writer claims the table anew.

    Nothing, unless it happens often: then Spark is overloaded or `consumer.write_timeout_s` short.
    """


class WriteConflict(ExternalError):
    """A concurrent commit made this one fail; the writer sends it again.

    Nothing, unless it happens often: then another job commits to the table.
    """


class TableRefused(ExternalError):
    """A table does not take the rows; the other tables land. It is tried again every 10 s.

    Repair the column, constraint, property or right that the message names.
    """


class StagedUnreadable(ExternalError):
    """A staged file is missing or damaged; its offsets are read from Kafka again.

    Find out what deletes files below `staging.path`.
    """

    def __init__(self, reason: str, files: Collection[str]) -> None:
        super().__init__(reason)
        self.files = frozenset(files)  # by name; none: it is not known which


class StagingUnavailable(ExternalError):
    """The staging directory does not take or return a file.

    Check `staging.path`: that it exists, has room, and may be written.
    """


class RegistryUnavailable(ExternalError):
    """The schema registry does not answer or refuses; the topic's records wait in Kafka.

    Check the registry, and its address, password and certificates in `registry`. It is also raised
    where protoc, which compiles schemas of Protobuf, cannot be run.
    """


class SchemaAtFault(ExternalError):
    """A schema of a table's subject cannot be used; the topic's records wait in Kafka.

    Mend the schema in the registry, or `columns` of the table's entry; with `on_schema_fault =
    "bad"` there, its records become bad ones.
    """


class MaskUnavailable(ExternalError):
    """A table's mask or filter cannot be applied; its topic's records wait in Kafka, unstaged.

    Mend `mask` or `where` of the table's entry, or its file `key_file`, as the message says.
    """


class ClusterUnavailable(ExternalError):
    """The Kubernetes API server does not answer.

    Check the API server and the network policy; consumers run on meanwhile.
    """


class ClusterRefused(ExternalError):
    """Kubernetes refuses a request; the message has its status and reason.

    Grant the right or the quota that the reason names (`deploy/base/controller-rbac.yaml`).
    """

    def __init__(self, status: int, reason: str, retry_after_s: float = 0.0) -> None:
        super().__init__(f"{status}: {reason}")
        self.status = status
        self.retry_after_s = retry_after_s  # until the server wants the next request


class TemplateRefused(ExternalError):
    """The template of a consumer's pod cannot be used; running consumers go on, no new one starts.

    Correct the ConfigMap `binwright-consumer`, or `spec.template` of the ConsumerGroup.
    """


class EmbeddedError(ExternalError):
    """An embedded broker, a Spark server or a part of them could not be started.

    Read the log that the message names; `BINWRIGHT_CACHE` holds what was downloaded.
    """


class Superseded(BinwrightError):
    """A newer process has this slot, or this one was declared dead; it exits.

    Nothing: the fleet runs the newer process. Often: two processes have the same `--slot`.
    """


class IllegalTransition(BinwrightError):
    """A state machine got an event that its state does not allow: a defect of binwright.

    Report it with the log.
    """
