"""What the paper printed, and how close to it a simulation is expected to come.

Ezzeddine, Baude, Huet, "Tail-Latency Aware and Resource-Efficient Bin Pack Autoscaling for
Distributed Event Queues", CLOSER 2024, doi:10.5220/0012630100003711: Tables 2 and 3, sections 5.1
to 5.3. Each value is of a single run on real servers.
"""

from dataclasses import dataclass

SOURCE = (
    "Ezzeddine, Baude, Huet, Tail-Latency Aware and Resource-Efficient Bin Pack Autoscaling for "
    "Distributed Event Queues, CLOSER 2024: Tables 2 and 3, the skewed workloads of section 5.1, "
    "heartbeats (5.2), long rebalances (5.3), Figures 4 to 12"
)

SLA_POINTS = 1.7
MEAN_SLA_POINTS = 0.72
MINUTES_SHARE = 0.11
STEPS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A row of the paper, and the tolerance for a simulated one."""

    sla: float  # % of events within 500 ms
    minutes: float | None = None  # replica-minutes
    ups: int | None = None
    downs: int | None = None
    minutes_share: float = MINUTES_SHARE
    is_reproducible: bool = True  # False: no simulation comes near, see `GAP`


GAP = (
    "Algorithm 1 with rebalances of 0.5 and 2 s does better here than in the paper, by 8 points: "
    "no setting of the simulator reproduces these two rows, so the gain of Algorithm 2 over it is "
    "not a target."
)

WORKLOADS = {"w1": ("Figure 2", 109_000), "w2": ("Figure 3", 1_350_000)}
"""The figure of each workload, and about how many events the paper says that it has."""

Row = tuple[str, str]
"""Table and policy."""

PUBLISHED: dict[Row, Published] = {
    ("w1", "Algorithm 2"): Published(sla=97.4, minutes=30.21, ups=6, downs=6),
    ("w1", "Linear"): Published(sla=94.7, minutes=25.5, ups=6, downs=6),
    ("w1", "Optimal"): Published(sla=100, minutes=32.7, ups=6, downs=6, minutes_share=0.002),
    ("w1", "Overprovision"): Published(sla=100, minutes=50, ups=0, downs=0, minutes_share=0.002),
    ("w2", "Algorithm 2"): Published(sla=98.9, minutes=402.9, ups=20, downs=16),
    ("w2", "Linear"): Published(sla=95.4, minutes=325.7, ups=23, downs=20),
    # The paper prints 20 and 16 steps; its own workload gives 120 and 120.
    ("w2", "Optimal"): Published(sla=100, minutes=414.11),
    ("w2", "Overprovision"): Published(sla=100, minutes=600, ups=0, downs=0, minutes_share=0.002),
    ("w1-skew", "Algorithm 2"): Published(sla=98.9, minutes=29.8),
    ("w1-skew", "Linear"): Published(sla=84.7, minutes=25.5),
    ("w2-skew", "Algorithm 2"): Published(sla=99.08, minutes=392.15, minutes_share=0.16),
    ("w2-skew", "Linear"): Published(sla=85.9, minutes=329.7),
    ("w1-heartbeat", "Algorithm 2"): Published(sla=98.1),
    ("w2-heartbeat", "Algorithm 2"): Published(sla=99.07),
    ("w1-rebalance-500ms", "Algorithm 1"): Published(
        sla=90.1, minutes=33.85, is_reproducible=False
    ),
    ("w1-rebalance-500ms", "Algorithm 2"): Published(sla=98.2, minutes=34.61),
    ("w1-rebalance-2s", "Algorithm 1"): Published(sla=85.4, minutes=34.16, is_reproducible=False),
    ("w1-rebalance-2s", "Algorithm 2"): Published(sla=99.4, minutes=44.7),
}
