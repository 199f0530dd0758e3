"""A live run of the demo's stream beside its simulation."""
