"""Load, while certificates, tokens and passwords are renewed and the broker restarts."""
