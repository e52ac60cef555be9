"""What a program does with the client that is generated for Python. Prints what it saw; arguments: URL of the service, key, org, project, operations."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from typing import Callable

from client import (
    Agent,
    ApiError,
    AsyncClient,
    Client,
    CreateSandboxRequest,
    ExecInSandboxRequest,
    Sandbox,
    SandboxStatus,
    UpdateProjectRequest,
    WriteFileRequest,
)

URL, KEY, ORG, PROJECT, *OPERATIONS = sys.argv[1:]


def refusal(call: Callable[[], object]) -> str:
    try:
        call()
    except ApiError as error:
        return told(error)
    return "it was not refused"


def told(error: ApiError) -> str:
    return f"{error.status} {error.body['error']['code']}"


def use() -> dict[str, object]:
    client = Client(f"{URL}/v1", auth={"bearer": KEY})
    seen: dict[str, object] = {"me": client.get_me().id != ""}

    body = CreateSandboxRequest(agent=Agent.AGENT_ONE, project_id=PROJECT, end_user_id="from-python", metadata={"paid": True})
    made: Sandbox = client.create_sandbox(ORG, body, idempotency_key="from-python").sandbox
    seen["created"] = [made.end_user_id, made.metadata, made.project_id == PROJECT, isinstance(made.status, SandboxStatus)]
    again = client.create_sandbox_with_headers(ORG, body, idempotency_key="from-python")
    seen["again"] = [again.data.sandbox.id == made.id, again.headers["idempotent_replayed"]]

    while (found := client.get_sandbox(made.id).sandbox).status is SandboxStatus.PROVISIONING:
        time.sleep(0.05)
    seen["awake"] = found.status in (SandboxStatus.RUNNING, SandboxStatus.READY)
    seen["listed"] = [one.id == made.id for one in client.list_sandboxes(ORG, end_user_id="from-python").sandboxes]

    result = client.exec_in_sandbox(made.id, ExecInSandboxRequest("echo from Python"))
    seen["exec"] = [result.exit_code, result.stdout, result.timed_out]
    client.write_file(made.id, WriteFileRequest(path="a.txt", content="ü\n"))
    seen["file"] = client.read_file(made.id, path="a.txt").content
    # What may be null: an object within an answer, and none of it.
    metrics = client.get_live_metrics(made.id).metrics
    seen["nested"] = [metrics.guest.cpu.vcpu > 0, found.status_reason, found.last_wake]
    seen["changed"] = client.update_project(ORG, PROJECT, UpdateProjectRequest(wake_on_use=True)).project.wake_on_use

    stranger = Client(f"{URL}/v1", auth={"bearer": f"{KEY}x"})
    seen["refused"] = [
        refusal(lambda: client.get_sandbox("sbx_nothing")),
        refusal(lambda: client.exec_in_sandbox(made.id, ExecInSandboxRequest("true", timeout_seconds=0))),
        refusal(lambda: stranger.get_me()),
    ]
    seen["asynchronous"] = asyncio.run(use_asynchronously(made.id))
    seen["destroyed"] = client.destroy_sandbox(made.id).sandbox.status in (SandboxStatus.DESTROYING, SandboxStatus.DELETED)

    methods = [re.sub("([A-Z])", r"_\1", name).lower() for name in OPERATIONS]
    seen["missing"] = [name for name in methods if not callable(getattr(Client, name, None)) or not callable(getattr(AsyncClient, name, None))]
    return seen


async def use_asynchronously(sandbox_id: str) -> list[str]:
    client = AsyncClient(f"{URL}/v1", auth={"bearer": KEY})
    result = await client.exec_in_sandbox(sandbox_id, ExecInSandboxRequest("exit 3"))
    try:
        await client.get_sandbox("sbx_nothing")
    except ApiError as error:
        return [str(result.exit_code), told(error)]
    return []


print(json.dumps(use()))
