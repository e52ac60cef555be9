// The MCP Inspector and curl, as docs/mcp.md has them, against real processes and a scripted agent.
import assert from 'node:assert/strict';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { MCP_TOOLS } from '@berth/contract/mcp/tools.ts';
import { FakeInstallation } from '../fake-installation.ts';
import { installPackages } from '../world/packages.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { documented, paste, type Shell } from './documented.ts';

let berth: FakeInstallation;
let shell: Shell;
let sessionPath: string;
before(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-inspector-'));
  // `npx` runs the package that it finds here.
  const packages = await installPackages(join(import.meta.dirname, 'programs'));
  await symlink(join(packages, 'node_modules'), join(folder, 'node_modules'));
  berth = await FakeInstallation.start({ BERTH_SCRIPTED_AGENT: '1' });
  shell = { folder, programs: [], environment: { BERTH_URL: berth.url, BERTH_API_KEY: berth.token } };
  const { id } = await berth.create({ projectId: await berth.makeProject({ name: 'mcp' }) });
  await berth.until(id, ({ status }) => status === 'ready');
  const session = await berth.call('POST', `/v1/sandboxes/${id}/agent-sessions`);
  sessionPath = `/v1/agent-sessions/${String(session['id'])}`;
});
after(async () => {
  await berth?.stop();
  await rm(shell.folder, { recursive: true, force: true });
});

interface Called {
  isError?: boolean;
  structuredContent: Record<string, unknown>;
}

const agentTools = MCP_TOOLS.filter(({ toolset }) => toolset === 'agent_sessions').map(({ name }) => name);
const session = (): Promise<Record<string, unknown>> => berth.call('GET', sessionPath);

test('the Inspector lists the tools with the documented command, in both eras of the protocol', async () => {
  const command = (await documented('MCP Inspector', 'sh')).trimEnd();
  for (const era of ['legacy', 'modern']) {
    const printed = await paste(`${command} --protocol-era ${era}`, shell);
    const { tools } = JSON.parse(printed) as { tools: { name: string }[] };
    assert.deepEqual(
      tools.map(({ name }) => name),
      agentTools,
    );
  }
});

test('the Inspector answers an approval with a numeric request_id', async () => {
  const command = (await documented('MCP Inspector', 'sh')).replace('--method tools/list', '').trimEnd();
  const call = async (era: string, tool: string, given: string): Promise<Called> => {
    const flags = `--protocol-era ${era} --method tools/call --tool-name ${tool} --tool-arg ${given}`;
    return JSON.parse(await paste(`${command} ${flags}`, shell)) as Called;
  };
  const session_id = `session_id=${sessionPath.split('/').at(-1)}`;
  for (const era of ['legacy', 'modern']) {
    const sent = await call(era, 'send_agent_message', `${session_id} 'text=ask Deploy' request_key=request.${era}`);
    await untilTrue('an approval', async () => (await session())['needsYou'] === true);
    const found = await call(era, 'get_agent_session', session_id);
    const { requestId } = found.structuredContent['pendingInput'] as { requestId: unknown };
    assert.equal(typeof requestId, 'number');
    const given = `${session_id} request_id=${String(requestId)} decision=accept`;
    const answered = await call(era, 'answer_agent_prompt', given);
    assert.equal(answered.isError, undefined);
    const { turnId } = sent.structuredContent;
    assert.deepEqual(
      [answered.structuredContent['requestId'], answered.structuredContent['turnId']],
      [requestId, turnId],
    );
    await untilTrue('the end of the turn', async () => (await session())['turnState'] === 'completed');
    const { messages } = (await call(era, 'get_agent_output', session_id)).structuredContent;
    assert.deepEqual(
      (messages as { text: string; turnId: string }[])
        .filter((reply) => reply.turnId === turnId)
        .map(({ text }) => text),
      ['decision accept'],
    );
  }
});

test('the documented curl command calls a tool', async () => {
  const { result } = JSON.parse(await paste(await documented('curl', 'sh'), shell)) as { result: Called };
  const { sessions } = result.structuredContent as { sessions: { id: string }[] };
  assert.deepEqual(
    sessions.map(({ id }) => id),
    [sessionPath.split('/').at(-1)],
  );
});
