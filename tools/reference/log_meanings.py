"""What each log event means, in one sentence: a test holds the list against the source."""

from tools.reference.control_meanings import CONTROL_MEANINGS

MEANINGS = CONTROL_MEANINGS | {
    "announcement.refused": (
        "An announcement of a staged file contradicts itself, its file, an earlier one or Kafka; "
        "its rows do not land from it. Who may write to the landing topic?"
    ),
    "announcements.dropped": (
        "More announcements of a table wait for rows before theirs than are kept: the oldest are "
        "dropped. What is missing is read again. Who may write to the landing topic?"
    ),
    "archive.created": "Java's class-data archive was written; later starts are faster.",
    "archive.failed": "Java's class-data archive could not be written; servers start more slowly.",
    "balancer.crashed": (
        "The watch over brokers has a fault of its own: please report it. It rests for an hour."
    ),
    "balance.failed": (
        "The brokers could not be looked at, or there is no placement for what they hold; the next "
        "look follows."
    ),
    "balance.finished": "A plan for brokers is carried out.",
    "balance.started": (
        "The leader carries out a plan for brokers; `again`: one that had been started before, "
        "`by`: who approved it."
    ),
    "balance.withdrawn": (
        "A plan for brokers is out of date or not safe; if one is needed, another takes its place."
    ),
    "balance.refused": (
        "Kafka does not let the balancer look at the brokers: it needs DESCRIBE on the cluster. "
        "It rests for an hour."
    ),
    "balance.proposed": (
        "Brokers are uneven, or will be full; a plan would copy so many bytes. With a number it is "
        "carried out when it is approved (`waits`), or at once; without a number nothing is moved."
    ),
    "batch.large": "A batch that inflates to much memory is decoded, behind a mark for others.",
    "batch.skipped": (
        "Reading goes on behind a batch that cannot be decoded; `file` has its bytes."
    ),
    "batch.undecodable": "A batch cannot be decoded: its partition stands, it is fetched again.",
    "batch.unkept": "A batch that cannot be decoded could not be written to a file; tried again.",
    "batches.unavailable": (
        "The monitor may not read a topic, so it cannot estimate bytes per record from its batches."
    ),
    "broker.late": (
        "A broker did not answer the monitor or the scaler in time; its partitions are `stale`, or "
        "missing, until it does."
    ),
    "certificates.renewed": (
        "Files of kafka.ssl_* have changed: connections to Kafka that begin now use them."
    ),
    "certificates.unreadable": (
        "Files of kafka.ssl_* have changed and cannot be used, or do not fit together: those "
        "before are used until they do."
    ),
    "token.in_cleartext": (
        "A port that others reach wants a token, and has no TLS: whoever listens on the way reads "
        "it. Give the listener a certificate, or put a proxy with TLS before it."
    ),
    "token.delayed": (
        "No new token for Kafka could be had, so new connections use the one before, which is "
        "still valid."
    ),
    "client.abandoned": "A Kafka client did not close in time and was left behind.",
    "client.stop_failed": (
        "A Kafka client ended its closing with an error; its connections are gone."
    ),
    "commit.abandoned": (
        "A consumer ended while a commit was under way; the next writer finds out what became of "
        "it."
    ),
    "commit.conflicted": (
        "A commit is not in the table, because another one came first or a task of it failed; its "
        "rows go again."
    ),
    "clustering.failed": "Sorting a table's rows by `cluster_by` failed; it is tried again later.",
    "compaction.failed": "Merging a table's small files failed; it is tried again later.",
    "consumer.arrived": "A consumer process has started and sent its `Hello`.",
    "consumer.corrected": (
        "A consumer reads or writes something that it should not; the controller tells it to stop."
    ),
    "consumer.died": "A consumer was declared dead; its partitions and tables go to others.",
    "consumer.ended": "The consumer has handed everything over and ends.",
    "consumer.hung": (
        "A consumer of the fleet `fixed` was declared dead; whoever started the process has to "
        "end it."
    ),
    "consumer.leaving": "A consumer was asked to end; its partitions and tables go to others.",
    "consumer.left": "A consumer sent `Goodbye` and exits.",
    "consumer.ready": "A consumer can write to its staging directory and may be given partitions.",
    "control_topic.unreachable": (
        "A control topic cannot be read, or its partitions counted; it is tried again."
    ),
    "controller.failed": "Leading ended with an error; this controller tries again after a pause.",
    "controller.leading": "This controller leads from now on.",
    "controller.stepped_down": "This controller no longer leads; another one does.",
    "controller.waiting": "This controller is a standby.",
    "deletion.failed": "Landed staged files could not be deleted.",
    "drain.overdue": (
        "The graceful exit took longer than `consumer.drain_timeout_s`; the consumer ends without "
        "a `Goodbye`."
    ),
    "drain.started": (
        "No controller moved everything away in time; the consumer stops by itself and sends "
        "`Goodbye`."
    ),
    "ends.missing": (
        "The scaler could not look up which brokers lead the topics of scaled groups; no "
        "replica is taken away."
    ),
    "event.dropped": "Too many Kubernetes Events wait to be written; this one is lost.",
    "event.unwritten": "A Kubernetes Event could not be written.",
    "expiry.failed": "Old rows could not be deleted from a table; tried before its next vacuum.",
    "fetch.failed": "Records cannot be fetched.",
    "fetch.recovered": "Records can be fetched again.",
    "fetcher.died": "A Kafka client stopped fetching; another one replaces it.",
    "fetcher.failed": "A Kafka client failed unexpectedly; another one replaces it.",
    "fetcher.unreachable": "Kafka cannot be reached for the control topics; it is tried again.",
    "fetching.paused": (
        "Topics hold more than their share of memory; the consumer pauses fetching them."
    ),
    "gap.reported": (
        "A table's writer lacks staged files; the partitions are read again from what is committed."
    ),
    "gap.sent": "This writer reported a gap to the controller.",
    "goodbye.sent": "The consumer sent `Goodbye` with the offsets at which others continue.",
    "health.served": "`/live`, `/ready` and `/metrics` are answered at this address.",
    "hello.sent": "The consumer process sent its `Hello` and has its epoch.",
    "housekeeping.failed": "The maintenance of tables failed unexpectedly; it is tried again.",
    "housekeeping.inspect_failed": (
        "A table's files could not be listed, so it is neither compacted nor vacuumed now."
    ),
    "ivy.ended": "Ivy, which downloads jars, has ended.",
    "jars.missing": "Jars are missing in the cache and are downloaded.",
    "java.found": "This Java runs the embedded broker and Spark.",
    "keda.served": "The external scaler for KEDA is served.",
    "kubernetes.retried": "A request to the API server failed and is sent again.",
    "landing.failed": "Reading the landing topic failed unexpectedly; it is opened again.",
    "landing.recreated": (
        "The landing topic was deleted and created again; the writer reads it from its beginning."
    ),
    "landing_topic.missing": (
        "The landing topic is gone; it is created again, and what it held is announced or read "
        "again."
    ),
    "landing_topic.unreachable": "The landing topic cannot be read; staged files wait.",
    "layout.failed": "A table could not be clustered, or have statistics; it lands all the same.",
    "layout.waits": "`cluster_by` or `statistics` names columns that the table has not yet.",
    "list.failed": (
        "The ConsumerGroups of a namespace cannot be listed yet; those of the others are run."
    ),
    "log.cut": (
        "A partition's log is shorter than what was read of it (an unclean leader election); "
        "reading goes on at its end."
    ),
    "log.trim_failed": "A table's log is not visible on this machine and was not trimmed.",
    "log.trimmed": "Old entries of a table's log on a local disk were deleted.",
    "measurement.recovered": "What the event in `after` reported of a broker or topic is over.",
    "measurements.delayed": "The metrics topic cannot be read at the moment.",
    "measurements.missing": (
        "The metrics topic cannot be opened; without measurements the assignment stays."
    ),
    "message.delayed": (
        "Kafka does not confirm a message; it is published again until Kafka does. Of a consumer's "
        "reports the next one follows instead; rows whose file is to be announced are safe."
    ),
    "message.malformed": "A record on a control topic is not a message and was skipped.",
    "message.recovered": "Kafka confirms messages again.",
    "message.split": "A topic refused a large message; it is sent in smaller parts.",
    "message.undeliverable": (
        "A message cannot be published at all: its topic is missing or takes no such record."
    ),
    "message.unknown": "A message has a kind that this version does not know and was skipped.",
    "monitor.discovered": (
        "A monitor publishes measurements that the controller had not followed before."
    ),
    "monitor.silent": (
        "A monitor stopped publishing; the controller follows another, or keeps the assignment if "
        "there is none."
    ),
    "name.unresolved": (
        "A host's name did not resolve before its connection was given up; that is told apart."
    ),
    "needs.delayed": "The needs topic cannot be read at the moment; what was read last holds.",
    "needs.read": "The set of topics that groups want measured has changed.",
    "needs.unreadable": (
        "The monitor cannot read the needs topic; it measures what its settings name."
    ),
    "offset.unknown": (
        "The committed offset lies beyond the partition's end and has not landed; reading begins "
        "at the first offset kept."
    ),
    "offset.set_back": (
        "The group's offset of a partition is set back to where the table says that rows continue."
    ),
    "offsets.not_committed": "Offsets could not be committed to Kafka; the table has them.",
    "orders.unreachable": (
        "The group's orders topic cannot be read: no table is paused or resumed until it can. A "
        "controller creates it when it leads the group."
    ),
    "partition.delayed": "Kafka does not return where partitions begin or end; their start waits.",
    "partition.handed_back": (
        "The owner of a split partition reads on by itself: it has caught up, or a part could not "
        "be staged."
    ),
    "partition.handed_out": (
        "The owner of a split partition is behind, and hands out parts from this offset on."
    ),
    "partition.started": "The consumer reads a partition from this offset on.",
    "partition.stopped": "The consumer stopped reading a partition.",
    "pass.failed": "A pass of the monitor failed; the next one follows after a pause.",
    "pass.recovered": "The monitor measures again.",
    "password.readable": (
        "Every user of the machine may read the settings file, in which a password is."
    ),
    "pattern.refused": "A group's pattern is not a regular expression and is ignored.",
    "probe.left": (
        "The topic with which `brokers apply` measures how long producers wait could not be "
        "removed; the next run removes it."
    ),
    "producer.abandoned": "A Kafka producer did not close in time and was left behind.",
    "producer.replaced": "A Kafka producer failed and was replaced by a new one.",
    "reader.check_failed": "Kafka did not return the end of metadata partition 0.",
    "reader.disconnected": (
        "The controller has lost its connection to Kafka and declares no consumer dead meanwhile."
    ),
    "reader.reconnected": "The controller's connection to Kafka is back.",
    "reassignment.advanced": "`brokers apply` started copies, or moved leaders.",
    "reassignment.failed": "Kafka did not answer `brokers apply`; it tries again.",
    "reassignment.left": (
        "`brokers apply` ended and could not take back what it had under way: start it again, or "
        "`brokers cancel`."
    ),
    "reassignment.paused": "`brokers apply` starts nothing new; the reasons say why.",
    "reassignment.resumed": "`brokers apply` goes on.",
    "reassignment.stopped": (
        "`brokers apply` ends early: it takes back what is being copied, and its throttles."
    ),
    "request.unanswered": "A page or its numbers failed by a fault of its own: please report it.",
    "record.undecodable": "A header key of a record is not UTF-8; it is escaped.",
    "range.refused": (
        "A part of a split partition cannot be staged here now; the partition's owner does."
    ),
    "records.deleted": "Records were deleted before a scaled group had read them.",
    "records.lost": (
        "Retention deleted records before they were read: they are missing in the table."
    ),
    "records.skipped": "Retention deleted records of a control topic before they were read.",
    "request.failed": "An HTTP client went away before it had its response.",
    "rows.passed_over": (
        "Rows were announced from before the offset at which their partition begins in the table, "
        "as the writer had decided before: they are not in it. Kafka's retention is shorter than "
        "the time until the first claim."
    ),
    "rows.missing": (
        "Nothing is staged for the offsets that come next in a table; they are read again."
    ),
    "scaledgroup.refused": "A ScaledGroup is not scaled; its status has the same reason.",
    "scaledgroup.released": "A ScaledGroup is no longer scaled: it was deleted.",
    "scaledgroup.started": "A ScaledGroup is scaled from now on.",
    "server.killed": "An embedded server did not end in time and was killed.",
    "server.started": "An embedded server runs.",
    "server.stopped": "An embedded server ended.",
    "service.ended": "A service of `binwright up` or `demo` ended and is started again.",
    "service.failed": "The service ends with an error.",
    "session.release_failed": (
        "A Spark session could not be released; the server forgets it by itself."
    ),
    "sizes.unavailable": (
        "A broker does not return log sizes; rates are estimated from records and batches."
    ),
    "schema.misfit": (
        "A version of a subject has no columns, or gives one another type than an older version: "
        "values that do not fit are bad."
    ),
    "schema.refused": (
        "A schema of a table's subject cannot be used: the topic's records wait until it, or the "
        "table's entry, is mended."
    ),
    "spark.not_warmed_up": (
        "The warm-up of the embedded Spark failed or took too long; its first commits are slow."
    ),
    "spark.warmed_up": "A Spark server has made its first commits, in throw-away tables.",
    "staging.collect_failed": (
        "Old staged files could not be listed or deleted; it is tried again in an hour."
    ),
    "staging.collected": "Old staged files that nobody deleted were deleted by age.",
    "staging.delayed": "A file cannot be staged or announced: its rows wait; tried again.",
    "staging.found": (
        "Retention deleted records before they were read, and a staged file has them: it is "
        "announced again."
    ),
    "staging.full": (
        "Files of a topic that have not landed take its share of `staging.max_bytes`; the consumer "
        "stops fetching the topic."
    ),
    "staging.kept": (
        "Old staged files are not deleted: they have rows that have not landed, and that Kafka no "
        "longer has."
    ),
    "staging.list_failed": "The consumer cannot see which of its staged files have landed.",
    "staging.lost": "Staged files are missing or damaged; their offsets are read again.",
    "staging.failed": "A defect of binwright: a topic's rows cannot be staged; tried again.",
    "staging.mark_left": "The mark of a large batch cannot be deleted; tried again.",
    "staging.recovered": "Files can be staged again.",
    "staging.resumed": "Files of the topic have landed; it is fetched again.",
    "staging.slow": "Staging one file takes long.",
    "staging.unavailable": "The staging directory cannot be written; the consumer is not ready.",
    "status.unwritten": "The status of a ConsumerGroup could not be written.",
    "steering.failed": (
        "A look at an ordinary group, or its rebalance, failed; it is tried again."
    ),
    "stop.requested": "SIGTERM, SIGINT or SIGHUP arrived; the service ends.",
    "table.behind": (
        "Commits take longer than `lake.freshness_s`: Spark cannot keep up with this table."
    ),
    "table.claimed": "This consumer is the writer of a table from now on.",
    "table.expired": "Rows older than `keep_days` were deleted from a table.",
    "table.clustered": "The rows of a table's files were sorted by `cluster_by`.",
    "table.compacted": "Small files of a table were merged.",
    "table.completed": "The creation of a table had been cut off, and was completed.",
    "table.delayed": "Nothing lands in a table at the moment: Spark or the lake does not answer.",
    "table.lost": "Another consumer is the writer of the table now.",
    "table.contradicted": (
        "The rows of a table, the group's offsets, or the stamp of a version that the event names "
        "reach above the end of its topic, or a stamp is a later version's or no writer's: nothing "
        "lands until a person decides."
    ),
    "table.reclaimed": (
        "A commit ended without a verdict; the writer claims the table anew and reads what is "
        "committed."
    ),
    "table.paused": "A person has paused a table: nothing lands until it is resumed.",
    "table.recovered": "A table takes rows again.",
    "table.refused": (
        "A table does not take the rows; the other tables land, and it is tried again every 10 s."
    ),
    "table.resolved": "The writer knows from the table's stamps what is committed.",
    "table.resumed": "A person has a paused table land again.",
    "table.restarted": "A table's writer starts over: its session or the landing topic failed.",
    "table.vacuumed": "Files that no kept version of a table needs were deleted.",
    "table.field_unknown": (
        "Records have a field that no column of the table has, or takes: left out, or kept in "
        "`_rest`, as `new_fields` of the table's entry has it. Once for each name and process."
    ),
    "table.columns_added": "A table got columns for new fields of JSON.",
    "table.columns_full": (
        "Records have more new fields than a table gets columns for: the others stay in `_rest`."
    ),
    "table.column_refused": "A table does not take a column for a new field: it stays in `_rest`.",
    "table.widened": "Columns of a table became wider; some readers no longer read it.",
    "target.failed": (
        "An unexpected error in one scaled group; the others go on, and it is tried again."
    ),
    "topic.created": "A topic was created.",
    "topic.describe_failed": "The configuration of a topic cannot be read; it is not checked.",
    "topic.deselected": (
        "A topic is not selected any more; its partitions are stopped and its table stays."
    ),
    "topic.gone": "A topic was missing in three passes; its partitions are given up.",
    "throttles.stripped": (
        "Another operator changed lists of replicas that `apply` limits; they are set again."
    ),
    "topic.missing": "A topic that is to be measured does not exist.",
    "topic.recreated": "A topic was deleted and created again; it is read from its beginning.",
    "topic.refused": "The consumer has no right to read a topic.",
    "topic.unknown": "Kafka does not return the id of a topic; staging of the topic waits.",
    "topic.unchecked": (
        "This user may not read a topic, so who made it is not known; it is not grown."
    ),
    "topic.unsafe": "The metadata topic is configured so that a failed broker may lose records.",
    "topics.measured": "A pass of the monitor has published its measurements.",
    "topics.none": "The monitor has nothing to measure yet.",
    "transactions.unknown": "Where open transactions begin cannot be asked; `explain` names none.",
    "trigger.forgotten": (
        "A KEDA trigger has not asked for ten minutes; its group is not looked up any more."
    ),
    "trigger.started": "A KEDA trigger asked for a group for the first time.",
    "vacuum.failed": "Deleting a table's old files failed; it is tried again later.",
    "watch.expired": "Kubernetes ended a watch as too old; it is opened again.",
    "watch.failed": "Kubernetes refuses or breaks a watch; it is opened again after a pause.",
    "write.ended": "A commit ended; `committed` is its verdict.",
    "writer.failed": "A table's writer failed unexpectedly; it starts over, the other tables land.",
    "writer.lost": (
        "A consumer no longer reports a table that it should write; the controller chooses a "
        "writer again."
    ),
}
