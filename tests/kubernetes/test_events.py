"""Events on a real API server, and those that it does not take."""

import asyncio

import pytest

from binwright.controller.kube.deployment import Owner
from binwright.controller.kube.events import Recorder

from .site import Site

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="session")]


async def test_an_event_that_is_refused_does_not_keep_back_the_next(site: Site) -> None:
    recorder = Recorder(site.api)
    writing = asyncio.create_task(recorder.run())
    nowhere = Owner("apps/v1", "Deployment", "it", "u", "no-such-namespace")
    recorder.note(nowhere, "Refused", "there is no such namespace")
    recorder.note(site.owner, "Written", "all the same")
    try:
        await site.hear("Written", "all the same")
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
