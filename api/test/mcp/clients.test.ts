// The MCP endpoint with the official clients of both protocol generations.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { MCP_TOOLS } from '@berth/contract/mcp/tools.ts';
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client';
import { Client as OlderClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OlderTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { startApi, type TestApi } from '../world/api.ts';

interface CallResult {
  isError?: boolean;
  content: { type: string; text: string }[];
  structuredContent?: any; // oxlint-disable-line typescript/no-explicit-any
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
    assert.match(missing.content[0]?.text ?? '', /^sandbox_not_found: there is no sandbox with the id/);
    await client.close();
  });
}
