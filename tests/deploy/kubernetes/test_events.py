"""Events on a real API server, and those that it refuses."""

import asyncio

import pytest
from tests.deploy.kubernetes.sandbox import Sandbox

from binwright.kubernetes.events import EventRecorder
from binwright.kubernetes.objects import Owner

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="session")]


async def test_an_event_that_is_refused_does_not_delay_the_next(sandbox: Sandbox) -> None:
    recorder = EventRecorder(sandbox.api)
    writing = asyncio.create_task(recorder.run())
    nowhere = Owner("apps/v1", "Deployment", "it", "u", "no-such-namespace")
    recorder.note(nowhere, "Refused", "there is no such namespace")
    recorder.note(sandbox.owner, "Written", "all the same")
    try:
        await sandbox.wait_for_event("Written", "all the same")
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
