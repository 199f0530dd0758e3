"""A realm of its own on this machine: its KDC, its principals, and their keytabs."""

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.programs import program_of_apt, run_program

from binwright.local.child import Child, Command
from binwright.local.server import HOST, Server, accepts_connections, reserve_port

DOMAIN = "BINWRIGHT.TEST"
STEP_S, READY_S, GRACE_S = 60.0, 30.0, 10.0
KRB5_CONF = """\
[libdefaults]
 default_realm = {domain}
 dns_lookup_realm = false
 dns_lookup_kdc = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
 kdc_timesync = {timesync}
[realms]
 {domain} = {{
  kdc = {host}:{port}
 }}
"""
KDC_CONF = """\
[kdcdefaults]
 kdc_listen = ""
 kdc_tcp_listen = {host}:{port}
[realms]
 {domain} = {{
  database_name = {directory}/principal
  key_stash_file = {directory}/stash
 }}
[logging]
 kdc = FILE:{directory}/kdc.log
"""


@dataclass
class Kdc:
    """The realm `DOMAIN`.

    Attributes:
        directory: With all its files.
        server: Its process, which can be stopped and started.
    """

    directory: Path
    server: Server = field(init=False)

    @property
    def config(self) -> Path:
        """What clients and brokers read."""
        return self.directory / "krb5.conf"

    @property
    def strict_config(self) -> Path:
        """The same for a client that does not follow the KDC's clock."""
        return self.directory / "strict.conf"

    def environment(self) -> dict[str, str]:
        """Return the variables of the KDC and of what changes its principals."""
        own = {"KRB5_CONFIG": self.config, "KRB5_KDC_PROFILE": self.directory / "kdc.conf"}
        path = f"{os.environ['PATH']}:/usr/sbin"
        return {**os.environ, "PATH": path, **{name: str(file) for name, file in own.items()}}

    def make(self, port: int) -> None:
        """Make the realm, without principals, for a KDC at this port."""
        self.directory.mkdir()
        place = {"domain": DOMAIN, "host": HOST, "port": port, "directory": self.directory}
        self.config.write_text(KRB5_CONF.format(**place, timesync=1))
        self.strict_config.write_text(KRB5_CONF.format(**place, timesync=0))
        (self.directory / "kdc.conf").write_text(KDC_CONF.format(**place))
        self._run("kdb5_util", "create", "-s", "-r", DOMAIN, "-P", "of a realm for tests")

        async def serving(child: Child) -> None:
            await child.wait_until_ready(lambda: accepts_connections(port), deadline_s=READY_S)

        command = Command(
            title="the KDC",
            argv=(program_of_apt(("krb5kdc",), "krb5-kdc"), "-n"),
            directory=self.directory,
            log=self.directory / "krb5kdc.out",
            environment=self.environment(),
        )
        self.server = Server(command, until_ready=serving, grace_s=GRACE_S)

    def add(self, principal: str, *, life_s: int | None = None) -> Path:
        """Add a principal; return its keytab. Its tickets last `life_s`."""
        life = () if life_s is None else ("-maxlife", f"{life_s} seconds")
        self._run("kadmin.local", "addprinc", "-randkey", *life, principal)
        return self.renew(principal)

    def renew(self, principal: str, name: str | None = None) -> Path:
        """Give a principal another key; return a keytab with it."""
        keytab = self.directory / f"{name or principal.replace('/', '-')}.keytab"
        self._run("kadmin.local", "ktadd", "-k", str(keytab), principal)
        assert keytab.is_file()
        return keytab

    def delete(self, principal: str) -> None:
        """Delete a principal; its keytab stays."""
        self._run("kadmin.local", "delprinc", "-force", principal)

    def log_in(self, principal: str, keytab: Path) -> str:
        """Return a cache with a ticket for ten minutes, as kinit leaves it."""
        cache = f"FILE:{self.directory / principal}.tickets"
        self._run("kinit", "-c", cache, "-l", "10m", "-k", "-t", str(keytab), principal)
        return cache

    def issued(self, principal: str) -> list[int]:
        """Return when a principal got tickets for tickets, s since 1970."""
        issue = rf"AS_REQ .*ISSUE: authtime (\d+), .*, {principal}@{DOMAIN} for krbtgt/"
        return [int(each) for each in re.findall(issue, (self.directory / "kdc.log").read_text())]

    def _run(self, *command: str) -> None:
        done = run_program(*command, timeout_s=STEP_S, environment=self.environment())
        assert done.returncode == 0, done.stderr


@asynccontextmanager
async def run_kdc(directory: Path) -> AsyncIterator[Kdc]:
    """Run a new realm while the body runs."""
    with reserve_port() as port:
        kdc = Kdc(directory)
        kdc.make(port)
        await kdc.server.start()
        try:
            yield kdc
        finally:
            await kdc.server.stop()
