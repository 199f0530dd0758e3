"""Settings of all programs: one TOML file, overridden by the environment, checked as a whole.

`BINWRIGHT_SETTINGS` names the file; `BINWRIGHT_<SECTION>__<NAME>` overrides one value.
Unknown keys are refused, all faults are reported at once, and secrets print as stars.
"""
