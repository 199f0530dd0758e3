"""The policy simulator: one load through the product's own controller, and through others.

`scenario` is what is simulated, `run` simulates it, `outcome` has the figures; `tables`, `charts`
and `section` show them. `machine` runs the product's controller and consumers on virtual time
(`clock`), `policies` are others beside it, `flow` is what all of them read. May import the core,
the packings and the lab's report.
"""
