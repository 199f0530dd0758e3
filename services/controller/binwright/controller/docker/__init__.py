"""Containers of a Docker engine as consumers."""
