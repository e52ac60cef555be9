// The process tools of the MCP endpoint, with a scripted guest.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startApi, type TestApi } from '../world/api.ts';
import type { FakeProcess } from '../world/guests/process-guests.ts';
import { callTool, postMcp } from './post.ts';

let api: TestApi;
let sandbox_id: string;
before(async () => {
  api = await startApi({ durable: false });
  sandbox_id = (await api.makeSandbox('ready')).id;
});
after(() => api.close());

async function call(name: string, given: object) {
  const { body } = await postMcp(api, callTool(name, { sandbox_id, ...given }), { query: '?toolsets=sandboxes' });
  return body.result;
}

/** Calls a tool that must succeed; returns the response body of its route. */
async function use(name: string, given: object = {}) {
  const { isError, structuredContent, content } = await call(name, given);
  assert.equal(isError, undefined, JSON.stringify(content));
  return structuredContent;
}

async function start(given: object): Promise<{ process_id: string; guest: FakeProcess }> {
  const { process } = await use('start_process', given);
  return { process_id: process.id, guest: api.front.processes.of(sandbox_id).get(process.id) as FakeProcess };
}

test('a process is started, read from a cursor, written to, signalled and removed', async () => {
  const { process_id, guest } = await start({ command: 'serve', stdin: true, keep_awake: true, env: { PORT: '3000' } });
  assert.deepEqual(
    [guest.asked.command, guest.asked.stdin, guest.asked.keepAwake, guest.asked.env],
    ['serve', true, true, ['PORT=3000']],
  );
  const { processes } = await use('list_processes');
  assert.deepEqual(
    processes.map(({ id, status }: { id: string; status: string }) => [id, status]),
    [[process_id, 'running']],
  );

  guest.write('stdout', 'listening\n');
  const first = await use('read_process_output', { process_id });
  assert.deepEqual([first.chunks[0].data, first.complete], ['listening\n', false]);
  const held = use('read_process_output', { process_id, since: first.cursor, wait_seconds: 20 });
  guest.write('stderr', 'request\n');
  assert.deepEqual((await held).chunks[0].data, 'request\n');

  assert.deepEqual(await use('write_process_input', { process_id, data: 'stop\n', offset: 0 }), { offset: 5 });
  const ended = use('get_process', { process_id, wait_seconds: 20 });
  await use('signal_process', { process_id });
  guest.end({ exitCode: 0 });
  assert.equal((await ended).process.exitCode, 0);
  await use('remove_process', { process_id });
  const { isError, _meta } = await call('get_process', { process_id });
  assert.deepEqual([isError, _meta.error.code], [true, 'process_not_found']);
});

test('a repeated start with the same key is the same process', async () => {
  const given = { argv: ['make'], idempotency_key: 'build-1' };
  assert.equal((await start(given)).process_id, (await start(given)).process_id);
});
