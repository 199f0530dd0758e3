"""Tables and figures of what was run, the paper's values beside those that it has."""
