"""The page of what each user needs of Kafka's authorizer."""

from tools.reference.markdown import code, entries

from binwright.protocol.rights import SHELL, Names, commands, other_rights, rights

HEAD = """\
# Kafka ACLs

What each service and each person needs on a broker with an authorizer, here for the group
`binwright`, the topics `orders` and `clicks`, and an ordinary group `orders-billing` that is scaled
and assigned. `binwright acls` prints it for your settings. What is not here, an authorizer that
refuses by default refuses; [operations.md](../operations.md#kafka-acls) has more about the rules,
and [security.md](../security.md) what each right allows.
"""
OTHERS = """
Beside these, the [assignor in brokers](../how-to/assignor.md#in-the-brokers) needs `Read` on
`binwright.metrics` and `Describe` on the groups' topics (the user of `binwright.client.*`), members
with the [assignor for Java or aiokafka](../how-to/assignor.md#java) `Read` on `binwright.plans`."""
NAMES = Names(
    group="binwright",
    data=("orders", "clicks"),
    metadata="binwright.metadata",
    commands="binwright.commands",
    landing="binwright.landing",
    orders="binwright.group-orders",
    metrics="binwright.metrics",
    needs="binwright.metrics.needs",
    scaled=("orders-billing",),
    assigned=("orders-billing",),
)


def page() -> str:
    """Return the page, in Markdown."""
    every = [*rights(NAMES), *other_rights(NAMES)]
    optional: dict[str, set[str]] = {}
    for right in every:
        if right.without:
            text = f"{code(right.service)} {right.operation} {code(right.name)}"
            optional.setdefault(right.without, set()).add(text)
    rows = entries(
        (without, (), "; ".join(sorted(optional[without]))) for without in sorted(optional)
    )
    shell = "\n".join([SHELL, "", *commands(every)])
    parts = [
        HEAD,
        f"```sh\n{shell}\n```",
        OTHERS,
        "\n## What may be left out\n\nBy what is so without it:\n",
        rows,
    ]
    return "\n".join(parts)
