"""Metrics that only a consumer has."""

from binwright.runtime.metrics import SECONDS, SLOT, TABLE, Metric

CONSUMER_STAGED_ROWS_TOTAL = Metric(
    "binwright_consumer_staged_rows_total",
    "Rows that this consumer process has staged.",
    SLOT,
    "consumer",
)
STAGING_SECONDS = Metric(
    "binwright_staging_seconds",
    "How long the consumer took to write a staged file.",
    SLOT,
    "consumer",
    SECONDS,
)
CONSUMER_STUCK_TOPICS = Metric(
    "binwright_consumer_stuck_topics",
    "Topics of which the consumer cannot read or stage what comes next.",
    SLOT,
    "consumer",
)
CONSUMER_DECODING_SECONDS_TOTAL = Metric(
    "binwright_consumer_decoding_seconds_total",
    "Time in which values were decoded.",
    (*SLOT, "topic", "table"),
    "consumer",
)
CONSUMER_BAD_RECORDS_TOTAL = Metric(
    "binwright_consumer_bad_records_total",
    "Records that could not be decoded, as often as they were staged.",
    (*SLOT, "topic", "table", "kind"),
    "consumer",
)
CONSUMER_NEW_FIELDS_TOTAL = Metric(
    "binwright_consumer_new_fields_total",
    "Fields of JSON without a column, left out or kept by `add`, as often as they were staged.",
    (*SLOT, "topic", "table"),
    "consumer",
)
CONSUMER_SCHEMA_VERSION = Metric(
    "binwright_consumer_schema_version",
    "Newest version of the subject of a table whose columns are those of its versions.",
    (*SLOT, "topic", "table"),
    "consumer",
)
CONSUMER_REGISTRY_REQUESTS_TOTAL = Metric(
    "binwright_consumer_registry_requests_total",
    "Requests to the schema registry that it answered, had nothing for, or failed.",
    (*SLOT, "outcome"),
    "consumer",
)
CONSUMER_SCHEMA_FAULTS_TOTAL = Metric(
    "binwright_consumer_schema_faults_total",
    "How often records of a table had to wait since a schema of its subject cannot be used.",
    (*SLOT, "topic", "table"),
    "consumer",
)
COMMIT_SECONDS = Metric(
    "binwright_commit_seconds",
    "How long a commit of rows to the table took.",
    TABLE,
    "consumer",
    SECONDS,
)
OLDEST_ROW_AGE_SECONDS = Metric(
    "binwright_oldest_row_age_seconds",
    "Age of the oldest row of a commit when the commit made it readable, from its fetch on.",
    TABLE,
    "consumer",
    SECONDS,
)
