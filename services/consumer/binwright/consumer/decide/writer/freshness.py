"""Paces a table's commits by `lake.freshness_s`: as few as keep the oldest row fresh enough."""

from binwright.consumer.decide.writer.chain import Chain
from binwright.consumer.decide.writer.requests import WriterConfig

FIRST_GUESS_S = 1.0  # duration of a commit, before one was measured
WEIGHT = 0.3  # of the newest commit's duration in the mean


def commit_at(chain: Chain, commit_s: float, config: WriterConfig, now: float) -> float | None:
    """Return when the next commit must begin to land its oldest row in time; None: no rows.

    Args:
        chain: What is announced and not committed.
        commit_s: How long a commit takes, s; see `mean_commit_s`.
        config: Freshness, s, and the size at which a batch is committed at once, bytes.
        now: Seconds on the clock of the announcements.
    """
    oldest = chain.oldest_at
    if oldest is None:
        return None
    if chain.pending_bytes >= config.batch_bytes:
        return now
    return oldest + config.freshness_s - commit_s


def mean_commit_s(mean_s: float, took_s: float) -> float:
    """Return the mean duration of commits, s, after one more that took `took_s`."""
    return mean_s + WEIGHT * (took_s - mean_s)
