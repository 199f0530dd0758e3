"""PIPES that the services share."""
