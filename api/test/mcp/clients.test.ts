// The MCP endpoint with the official clients of both protocol generations.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { MCP_TOOLS } from '@berth/contract/mcp/tools.ts';
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client';
import { Client as OlderClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OlderTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { startApi, type TestApi } from '../world/api.ts';
import { untilTrue } from '../../../os/test/until.ts';

type Used = any; // oxlint-disable-line typescript/no-explicit-any

interface CallResult {
  isError?: boolean;
  content: { type: string; text: string }[];
  structuredContent?: Used;
}

interface AnyClient {
  revision: string | undefined;
  listTools(): Promise<{ tools: { name: string }[] }>;
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
  close(): Promise<void>;
}

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

const url = (): URL => new URL(`${api.url}/v1/mcp?toolsets=sandboxes`);
const authorized = (): { requestInit: RequestInit } => ({
  requestInit: { headers: { authorization: `Bearer ${api.token}` } },
});

const CLIENTS: Readonly<Record<string, () => Promise<AnyClient>>> = {
  'the current client in its default mode': async () => {
    const client = new ModernClient({ name: 'test', version: '1' });
    await client.connect(new ModernTransport(url(), authorized()));
    return Object.assign(client, { revision: client.getNegotiatedProtocolVersion() });
  },
  'the current client with negotiation': async () => {
    const client = new ModernClient({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } });
    await client.connect(new ModernTransport(url(), authorized()));
    return Object.assign(client, { revision: client.getNegotiatedProtocolVersion() });
  },
  'the client of the first generation': async () => {
    const client = new OlderClient({ name: 'test', version: '1' });
    const transport = new OlderTransport(url(), authorized());
    await client.connect(transport);
    return Object.assign(client, { revision: transport.protocolVersion });
  },
};

const REVISIONS: Readonly<Record<string, string>> = {
  'the current client in its default mode': '2025-11-25',
  'the current client with negotiation': '2026-07-28',
  'the client of the first generation': '2025-11-25',
};

/** Calls a tool that must succeed; returns its structured content. */
async function use(client: AnyClient, name: string, given: Record<string, unknown>): Promise<Used> {
  const { isError, structuredContent, content } = (await client.callTool({ name, arguments: given })) as CallResult;
  assert.equal(isError, undefined, content[0]?.text);
  return structuredContent;
}

for (const [name, connect] of Object.entries(CLIENTS)) {
  test(`${name} lists and calls tools, and reads coded errors`, async () => {
    const client = await connect();
    assert.equal(client.revision, REVISIONS[name]);
    const { tools } = await client.listTools();
    assert.deepEqual(
      tools.map((tool) => tool.name),
      MCP_TOOLS.map((tool) => tool.name),
    );

    const { id, org_id: orgId } = await api.makeSandbox('ready');
    const call = async (tool: string, given: Record<string, unknown>): Promise<CallResult> =>
      (await client.callTool({ name: tool, arguments: given })) as CallResult;
    const found = await call('get_sandbox', { sandbox_id: id });
    const rest = (await api.call('GET', `/v1/sandboxes/${id}`)).body;
    assert.deepEqual(found.structuredContent, rest);
    assert.deepEqual(JSON.parse(found.content[0]?.text ?? ''), rest);
    const listed = await call('list_sandboxes', { org_id: orgId, limit: 1 });
    assert.equal(listed.structuredContent.sandboxes.length, 1);

    const missing = await call('get_sandbox', { sandbox_id: 'sbx_aaaaaaaaaaaaaaaaaaaaaaaa' });
    assert.equal(missing.isError, true);
    assert.match(missing.content[0]?.text ?? '', /^sandbox_not_found: there is no sandbox with this id/);
    await client.close();
  });

  test(`${name} drives an agent session`, async () => {
    const client = await connect();
    const { id: sandbox_id } = await api.makeSandbox('ready');
    const { id: session_id } = await use(client, 'create_agent_session', { sandbox_id });
    const guest = api.agents.session(sandbox_id, session_id);
    const message = { session_id, text: 'Say hello', request_key: 'request.1' };
    const { turnId } = await use(client, 'send_agent_message', message);
    assert.deepEqual(await use(client, 'send_agent_message', message), { turnId, state: 'running', replayed: true });

    const held = use(client, 'get_agent_output', { session_id, wait_seconds: 25 });
    await untilTrue('the read of output is held', () =>
      api.agents.calls.some(({ sessionId, query }) => sessionId === session_id && query.has('waitMs')),
    );
    guest.reply('hello');
    const { messages, nextCursor } = await held;
    assert.deepEqual([messages[0].text, messages[0].turnId], ['hello', turnId]);

    const request_id = guest.ask();
    const { pendingInput } = await use(client, 'get_agent_session', { session_id });
    assert.equal(pendingInput.requestId, request_id);
    const answer = { session_id, request_id: pendingInput.requestId, decision: 'accept' };
    const answered = { requestId: request_id, decision: 'accept', turnId, turnState: 'running', repeated: false };
    assert.deepEqual(await use(client, 'answer_agent_prompt', answer), answered);
    assert.deepEqual((await use(client, 'get_agent_output', { session_id, after: nextCursor })).messages, []);

    assert.equal((await use(client, 'interrupt_agent_turn', { session_id })).state, 'interrupting');
    guest.end('canceled');
    assert.equal((await use(client, 'get_agent_session', { session_id })).turnState, 'canceled');
    guest.change({ bridge: 'stopped', bridgeReason: 'agent_ended' });
    assert.equal((await use(client, 'recover_agent_session', { session_id })).bridgeState, 'ready');
    const { sessions } = await use(client, 'list_agent_sessions', { sandbox_id });
    assert.deepEqual([sessions.length, sessions[0].id], [1, session_id]);
    await client.close();
  });
}
