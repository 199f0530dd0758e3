"""Metrics of a fleet that reconciles in a loop."""

from binwright.runtime.metrics import GROUP, SLOT, Metric

SLOTS_WANTED = Metric(
    "binwright_slots_wanted", "Consumers that the group's plan wants.", GROUP, "fleet"
)
SLOT_TROUBLE = Metric(
    "binwright_slot_trouble",
    "1 for each slot whose consumer cannot run, with the reason.",
    (*SLOT, "reason"),
    "fleet",
)
SLOT_DISRUPTION = Metric(
    "binwright_slot_disruption",
    "1 for each slot whose pod ends with its node (`node`), runs by an older template (`roll`) "
    "or is evicted (`evicted`).",
    (*SLOT, "kind"),
    "fleet",
)
FLEET_REFUSALS = Metric(
    "binwright_fleet_refusals", "Reasons for which the cluster refuses changes.", GROUP, "fleet"
)
