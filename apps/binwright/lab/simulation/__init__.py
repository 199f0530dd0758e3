"""The simulator of consumer groups: one clock, one interface of a policy, two kinds of load.

Policies have the interface of the product's scaler; `policies` has the papers' and others. `fluid`
is a load in bytes that flow, of a day or a week, read by consumers that share their capacity;
`product` runs the product's controller and consumers over it. `records` is a load of single records
that consumers work off in batches, for latencies below a second: a fluid has neither batches nor
commits, and a week has too many records to follow each. `scenario` is what is simulated of a fluid
load, `run` simulates it; `outcome` has the figures and `report` shows them.
"""
