"""A Kerberos server of its own, with the keytabs that a test wants."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from binwright.local.server import HOST, reserve_port

DOMAIN = "BINWRIGHT.TEST"
"""The server's, which Kerberos calls a realm."""
TICKET_S = 20
"""How long a ticket lasts."""
SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Kdc:
    """A realm on this machine."""

    directory: Path
    port: int

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables of whoever belongs to the realm."""
        return {"KRB5_CONFIG": str(self.client_file())}

    def client_file(self, port: int | None = None) -> Path:
        """Return a client's configuration; another port: the server is away."""
        file = self.directory / f"krb5-{port or self.port}.conf"
        file.write_text(
            f"[libdefaults]\ndefault_realm = {DOMAIN}\nticket_lifetime = {TICKET_S}s\n"
            "rdns = false\ndns_canonicalize_hostname = false\ndns_lookup_kdc = false\n"
            "dns_uri_lookup = false\n"
            f"[realms]\n{DOMAIN} = {{\n  kdc = {HOST}:{port or self.port}\n}}\n"
        )
        return file

    def keytab(self, principal: str) -> Path:
        """Add a principal, or give it new keys; return a file with them."""
        file = self.directory / f"{principal.replace('/', '-')}.keytab"
        file.unlink(missing_ok=True)
        self._administer(f"addprinc -randkey {principal}")
        self._administer(f"ktadd -k {file} {principal}")
        return file

    def client(self, keytab: Path | None, name: str) -> dict[str, str]:
        """Return the variables of a client with this keytab; `name`: of its store of tickets."""
        found = {**self.environment, "KRB5CCNAME": f"FILE:{self.directory / name}.tickets"}
        found["KRB5_CLIENT_KTNAME"] = f"FILE:{keytab or self.directory / 'none.keytab'}"
        return found

    def _administer(self, command: str) -> None:
        self.run("kadmin.local", "-r", DOMAIN, "-q", command)

    def run(self, *command: str) -> None:
        """Run a program of the server to its end; a failure raises with what it printed."""
        done = subprocess.run(
            command,
            env=self.server_environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{command[0]}: {done.stdout}{done.stderr}"

    @property
    def server_environment(self) -> dict[str, str]:
        """Return the variables of the server's own programs."""
        sbin = "/usr/sbin:/sbin"
        own = {"KRB5_KDC_PROFILE": str(self.directory / "kdc.conf")}
        return {**os.environ, **self.environment, **own, "PATH": f"{os.environ['PATH']}:{sbin}"}


@contextmanager
def run_kdc(directory: Path) -> Iterator[Kdc]:
    """Run a server while the body runs."""
    directory.mkdir()
    with reserve_port() as port:
        kdc = Kdc(directory, port)
    (directory / "kdc.conf").write_text(
        f"[kdcdefaults]\nkdc_listen = {HOST}:{port}\nkdc_tcp_listen = {HOST}:{port}\n"
        f"[realms]\n{DOMAIN} = {{\n  database_name = {directory}/principals\n"
        f"  key_stash_file = {directory}/stash\n  acl_file = {directory}/acl\n}}\n"
    )
    kdc.run("kdb5_util", "create", "-s", "-P", "of this test", "-r", DOMAIN)
    log = (directory / "kdc.log").open("w")
    command = ("krb5kdc", "-n", "-r", DOMAIN)
    with log, subprocess.Popen(command, env=kdc.server_environment, stderr=log) as running:
        try:
            yield kdc
        finally:
            running.terminate()
            running.wait(SECONDS)
