"""Secrets in files, which are read again each time that they are needed."""

from pathlib import Path

from binwright.protocol.errors import SettingsError


def secret_at_start(file: Path, setting: str) -> str:
    """Return the text of a file without which a program does not start; raise `SettingsError`."""
    try:
        return read_secret(file, setting)
    except OSError as exc:
        raise SettingsError(f"{setting}: {exc}") from exc


def read_secret(file: Path, setting: str) -> str:
    """Return the text of a file, without spaces around it.

    Raises:
        OSError: It cannot be read, is empty, or is not text. aiokafka tries a connection that
            fails by this again.
    """
    try:
        secret = file.read_text(encoding="utf-8").strip()
    except ValueError:  # its message would quote the bytes
        raise OSError(f"{file} ({setting}) is not text in UTF-8") from None
    if not secret:
        raise OSError(f"{file} ({setting}) is empty")
    return secret
