"""What the log events about a group's plans, its consumers and its leader mean."""

CONTROL_MEANINGS = {
    "approval.refused": (
        "Somebody approved a plan that does not wait: it is out of date, already carried out, or "
        "only shown."
    ),
    "assignment.inconsistent": (
        "A report contradicts what the controller believes; it claims a new term and asks all "
        "consumers."
    ),
    "command.sent": "The controller sent a command to a consumer.",
    "fleet.failed": "The fleet could not do what the controller wants; it is tried again.",
    "fleet.reported": (
        "Something happened to a consumer's pod; `what` is the name of the Kubernetes Event."
    ),
    "group.failed": (
        "Running a ConsumerGroup failed unexpectedly; it is tried again, the others go on."
    ),
    "group.limited": "A ConsumerGroup may not have all that it asks for: a limit of its namespace.",
    "group.refused": "A ConsumerGroup cannot be run; its status has the same reason.",
    "group.released": (
        "A ConsumerGroup is no longer run: it was deleted, or another object has its group."
    ),
    "group.faulted": (
        "A scaled group cannot be sized, or Kafka does not know a name in its settings; the reason."
    ),
    "group.recovered": "What was wrong with a scaled group is set right.",
    "group.scaled": "The scaler set the replicas of a group's workload, with the reasons.",
    "group.seen": ("An ordinary group was looked at; the reason says what was decided."),
    "group.started": "A ConsumerGroup is run from now on.",
    "group.synchronized": "A new controller knows who reads and writes what.",
    "members.unknown": (
        "Replicas are to end, and which members they run cannot be told: they end as they are, "
        "with what they read."
    ),
    "replicas.emptying": "Replicas are to end, and their members give up what they read before.",
    "look.failed": "How records arrive at a group's topics could not be seen; it is tried again.",
    "group.unsteered": (
        "An ordinary group cannot be steered: it has no members, or they use another assignor."
    ),
    "groups.sized": "The scaler has made a pass over all groups.",
    "leadership.ended": (
        "Leading a ConsumerGroup ended with an error; it is tried again after a pause."
    ),
    "limits.measured": "Consumers have measured what they sustain; plans go by it from now on.",
    "packing.approximated": "The packing `exact` gave up and used the answer of `sticky`.",
    "order.received": "A person's order to the group holds from now on, or lifts an earlier one.",
    "orders.moved": (
        "The orders and approvals that an older version kept in the group's metadata topic are in "
        "its orders topic now; none is lost, and none counts in the metadata topic any more."
    ),
    "order.expired": "The time of a person's order is over: it holds nothing back any more.",
    "partition.split": (
        "Other consumers than before help to stage a partition that gets more than the limit; "
        "without `helpers` its owner stages it alone."
    ),
    "plan.held": (
        "Orders or settings hold a plan back, or cannot be followed; `reasons` says which."
    ),
    "plan.released": "What orders or settings held back (`was`) is held back no more.",
    "plan.approximated": "No optimum was proved for brokers; the best plan known is used.",
    "packing.overdue": (
        "The packing did not finish within `controller.plan_timeout_s`; the plan is dropped."
    ),
    "plan.absent": (
        "An aiokafka member found no valid plan for its group; it assigns as the sticky assignor "
        "does."
    ),
    "plan.approved": "A person approved the plan that waits.",
    "plan.followed": ("An aiokafka member assigns partitions by the controller's plan."),
    "plan.malformed": ("A record of the plans topic is not a plan; it is skipped."),
    "plan.interrupted": (
        "A plan was given up because the node of a consumer with a part in it is about to end; the "
        "consumer is replaced at once."
    ),
    "plan.overdue": (
        "A plan was not carried out within `controller.plan_timeout_s`; a new one is made."
    ),
    "plan.proposed": "A plan is shown, and waits for an approval if `waits` is true.",
    "plan.published": (
        "A plan for an ordinary group was published, and the group is made to rebalance."
    ),
    "plan.rejected": (
        "A packing's answer does not become a plan; the reason has what it would have cost."
    ),
    "plan.withdrawn": "A proposed plan is out of date.",
    "plans.missing": (
        "The plans topic does not exist; a member assigns without a plan until it does."
    ),
    "plans.unreachable": (
        "An aiokafka member cannot read the plans topic; the last plan counts until it is too old."
    ),
    "process.ended": "A consumer process ended by itself and is started again.",
    "process.killed": "A consumer process was killed because it was declared dead.",
    "process.overdue": "A consumer process did not end within its grace period and is killed.",
    "process.retired": "A consumer process is asked to end.",
    "process.started": "A consumer process was started.",
    "scale.failed": (
        "The scaler could not set the replicas of a group's workload; the next pass tries again."
    ),
    "state.changed": "The controller's state machine changed its state.",
    "term.begun": "The controller read its own Claim and asks all consumers for their state.",
}
