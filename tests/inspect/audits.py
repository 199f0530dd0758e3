"""Audits that tests begin with."""

from dataclasses import replace
from typing import Any

from binwright.inspect.audit import PartitionAudit


def partition_audit(**changes: Any) -> PartitionAudit:
    """Return the audit of a partition: without `changes`, ten records have one row each."""
    clean = PartitionAudit(
        partition=3,
        start=0,
        end=10,
        rows=10,
        first=0,
        last=9,
        lost=0,
        lost_ranges=(),
        unread=0,
        surplus=0,
        doubles=(),
        beyond=0,
    )
    return replace(clean, **changes)
