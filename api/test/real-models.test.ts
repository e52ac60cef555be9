// Model keys from their route to a model provider: the control plane, the real host daemon with its
// fake driver and model gateway, and a guest that calls a model server. Needs root.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startAgentWorld, storeKey, type AgentWorld } from '../../e2e/agents/suite/world.ts';
import { call as callApi } from '../../e2e/world/client.ts';
import type { Answer } from './world/answer.ts';
import { untilTrue } from '../../os/test/until.ts';

let world: AgentWorld;
before(async () => {
  world = await startAgentWorld();
});
after(() => world[Symbol.asyncDispose]());

async function call(method: 'GET' | 'POST', path: string, sent?: object): Promise<Answer['body']> {
  const { status, body } = await callApi(world.session, method, path, sent);
  assert.ok(status < 300, `${method} ${path}: ${JSON.stringify(body)}`);
  return body;
}

/** Stores a key; null deletes it. */
const setKey = (text: string | null): Promise<void> =>
  storeKey(world.session, 'agent_one', text && world.scan.note(text, 'a model key'));

/** Calls the model from within the guest; resolves with status and credential as it arrived. */
async function askModel(id: string, prompt: string): Promise<[string, string | null | undefined]> {
  const record = await readFile(join(world.daemon.root, 'host', 'vms', id, 'record.json'), 'utf8');
  const { driverState } = JSON.parse(record) as { driverState: { guest: { port: number } } };
  const url = `http://127.0.0.2:${driverState.guest.port}/openai/v1/responses`;
  const message = { type: 'message', role: 'user', content: [{ type: 'input_text', text: `${prompt}\n@say yes` }] };
  const script = `(async () => {
    const body = ${JSON.stringify(JSON.stringify({ model: 'm', input: [message] }))};
    for (;;) {
      try {
        return (await fetch('${url}', { method: 'POST', body })).status;
      } catch (error) {
        if (error.cause.code !== 'ECONNREFUSED') throw error;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  })().then((status) => process.stdout.write(String(status)))`;
  const command = `/node -e "eval(atob('${Buffer.from(script).toString('base64')}'))"`;
  const { stdout } = await call('POST', `/v1/sandboxes/${id}/exec`, { command, timeoutSeconds: 60 });
  return [stdout, world.models.calls.find((one) => one.prompt.includes(prompt))?.credential];
}

/** Neither in logs, tables, command lines and environments nor in the files of host and sandbox. */
async function assertNoKey(): Promise<void> {
  await world.scan.check(world.databaseUrl);
  assert.doesNotMatch(world.daemon.log.join('\n'), /sk-(first|second|third)/);
  const found = spawnSync('grep', ['-rlaE', '--devices=skip', 'sk-(first|second|third)-0', world.daemon.root]);
  assert.equal(String(found.stdout), '');
}

test('a guest calls models with the key of its project, as the API has it now, and never sees it', async () => {
  const { sandbox } = await call('POST', `/v1/orgs/${world.caller.orgId}/sandboxes`, {
    agent: 'agent_one',
    projectId: world.caller.projectId,
  });
  const id: string = sandbox.id;
  const becomes = (status: string): Promise<void> =>
    untilTrue(
      `the sandbox is ${status}`,
      async () => (await call('GET', `/v1/sandboxes/${id}`)).sandbox.status === status,
    );
  await becomes('ready');
  await setKey('sk-first-0123456789');
  assert.equal((await call('POST', `/v1/sandboxes/${id}/agent-sessions`)).bridgeState, 'ready');
  const turn = askModel(id, 'created\n@slow 100');
  await untilTrue('the model streams', async () => world.models.callsFor('created') > 0);
  await assertNoKey();
  assert.deepEqual(await turn, ['200', 'Bearer sk-first-0123456789']);
  await assertNoKey();

  await setKey('sk-second-0123456789');
  assert.deepEqual(await askModel(id, 'replaced'), ['200', 'Bearer sk-second-0123456789']);
  await setKey(null);
  assert.deepEqual(await askModel(id, 'deleted'), ['400', undefined]);
  await setKey('sk-third-0123456789');

  await call('POST', `/v1/sandboxes/${id}/sleep`);
  await becomes('stopped');
  await call('POST', `/v1/sandboxes/${id}/wake`);
  await becomes('ready');
  assert.deepEqual(await askModel(id, 'woken'), ['200', 'Bearer sk-third-0123456789']);

  await world.daemon.end('SIGKILL');
  await world.daemon.start();
  assert.deepEqual(await askModel(id, 'restarted'), ['200', 'Bearer sk-third-0123456789']);
  await call('POST', `/v1/sandboxes/${id}/destroy`);
  await becomes('deleted');
  await assertNoKey();
});
