"""Uses that the types of the generated client do not allow: each line that says so is one that the checker must find."""

from client import Agent, Client, CreateSandboxRequest, ExecInSandboxRequest

client = Client()
CreateSandboxRequest(agent=Agent.AGENT_ONE)  # wrong: no project
CreateSandboxRequest(agent="agent_nine", project_id="prj_1")  # wrong: no such agent
ExecInSandboxRequest("true", timeout_seconds="soon")  # wrong: a text for a number
client.exec_in_sandbox("sbx_1", CreateSandboxRequest(Agent.AGENT_ONE, "prj_1"))  # wrong: the body of another operation
client.create_sandbox("org_1", CreateSandboxRequest(Agent.AGENT_ONE, "prj_1")).id  # wrong: it is one level deeper
client.get_sandbox("sbx_1").sandbox.status_reason.code  # wrong: it may be null
client.list_sandboxes("org_1").sandboxes[0].end_user  # wrong: no such field
client.get_live_metrics("sbx_1").metrics.guest.cpu.vcpus  # wrong: no such field, several levels deep
