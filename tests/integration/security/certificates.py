"""Certificates that live as long as a test: an authority, what it signs, and what it does not."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)


class Authority:
    """Signs certificates and writes them as PEM files into a directory of its own."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.directory = directory
        self.ca_file = directory / "ca.pem"
        self._ca = trustme.CA()
        self._ca.cert_pem.write_to_path(self.ca_file)

    def client(
        self, name: str, *, valid_s: float = 3600.0, password: str | None = None
    ) -> tuple[Path, Path]:
        """Return the files of a client's certificate and key; a second call replaces both."""
        ends = datetime.now(UTC) + timedelta(seconds=valid_s)
        # Java parses no certificate whose list of other names is empty.
        leaf = self._ca.issue_cert(f"{name}@example.com", common_name=name, not_after=ends)
        certificate, key = self.directory / f"{name}.pem", self.directory / f"{name}.key"
        certificate.write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
        key.write_text(_pkcs8(leaf.private_key_pem.bytes(), password))
        return certificate, key

    def broker(self, host: str, *, expired: bool = False) -> dict[str, str]:
        """Return the settings of a listener whose certificate names `host`."""
        now = datetime.now(UTC)
        past = now - timedelta(days=2), now - timedelta(days=1)
        begins, ends = past if expired else (now - timedelta(days=1), now + timedelta(days=1))
        leaf = self._ca.issue_cert(host, not_before=begins, not_after=ends)
        chain = "".join(blob.bytes().decode() for blob in leaf.cert_chain_pems)
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": chain,
            "ssl.keystore.key": _pkcs8(leaf.private_key_pem.bytes()),
        }

    def server(self, host: str) -> ssl.SSLContext:
        """Return what a server with a certificate for `host` serves with."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._ca.issue_cert(host).configure_cert(context)
        return context

    def write_server(self, host: str, directory: Path) -> None:
        """Write `tls.crt` and `tls.key` for a server, as a Secret has them; replace older ones."""
        leaf = self._ca.issue_cert(host)
        chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems)
        for name, content in (("tls.crt", chain), ("tls.key", leaf.private_key_pem.bytes())):
            fresh = directory / f"{name}.new"
            fresh.write_bytes(content)
            fresh.replace(directory / name)

    def truststore(self) -> dict[str, str]:
        """Return the settings of a listener that takes this authority's clients."""
        return {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": self.ca_file.read_text(),
        }


def _pkcs8(key: bytes, password: str | None = None) -> str:
    """Return a key in the one form that Kafka reads."""
    loaded = load_pem_private_key(key, password=None)
    encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    return loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()
