// The curl samples of docs/mcp.md, run by a shell.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { mcpReference } from '@berth/contract/mcp/reference.ts';
import { MCP_TOOLS } from '@berth/contract/mcp/tools.ts';
import { startApi, type TestApi } from '../world/api.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

test('the curl samples of docs/mcp.md list tools and start a process', async () => {
  const { id } = await api.makeSandbox('ready');
  const [, section = ''] = /^### curl$([^]*?)^### /m.exec(mcpReference()) ?? [];
  const blocks = [...section.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, code = '']) => code);
  const env = { PATH: process.env['PATH'], BERTH_URL: api.url, BERTH_API_KEY: api.token, SANDBOX: id };
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', blocks.join('\necho\n')], { env });
  const [sessions, listed, started, ...others] = stdout
    .replaceAll('}{"', '}\n{"')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).result);
  assert.deepEqual([sessions.structuredContent.sessions, others], [[], []]);
  assert.deepEqual(
    listed.tools.map(({ name }: { name: string }) => name),
    MCP_TOOLS.map(({ name }) => name),
  );
  const { name, status, sandboxId } = started.structuredContent.process;
  assert.deepEqual([name, status, sandboxId], ['web', 'running', id]);
});
