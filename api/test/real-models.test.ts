// Model keys from their route to a model provider: the control plane, the real host daemon with its
// fake driver and model gateway, and a guest that calls a model server. Needs root.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Method } from '@berth/contract/route/route.ts';
import { pino } from 'pino';
import { ModelServer } from '../../e2e/model-servers/server.ts';
import { DaemonFixture } from '../../host/test/daemon/daemon-process.ts';
import { openControlPlane } from '../src/control-plane/control-plane.ts';
import { planCatalogueOf } from '../src/rules/billing/plan-catalogue.ts';
import { SecretKey } from '../src/services/context/secret-key.ts';
import { bootstrap } from '../src/services/people/bootstrap.ts';
import type { Answer } from './world/answer.ts';
import { signInAs } from './world/api.ts';
import { startPostgres, type TestPostgres } from './world/database.ts';
import { callDirectly } from './world/direct-call.ts';
import { SecretsScan } from './world/secrets-scan.ts';
import { SETTINGS } from './world/settings.ts';
import { untilTrue } from './world/until-true.ts';

const scan = new SecretsScan();
let postgres: TestPostgres;
let databaseUrl: string;
let models: ModelServer;
let daemon: DaemonFixture;
let controlPlane: Awaited<ReturnType<typeof openControlPlane>>;
let token: string;
let org: string;
let projectId: string;

before(async () => {
  process.env['BERTH_SCRIPTED_AGENT'] = '1';
  postgres = await startPostgres();
  databaseUrl = await postgres.createMigratedDatabase();
  models = await ModelServer.start();
  daemon = await DaemonFixture.make(['--driver', 'fake', '--pool-max', '0']);
  await daemon.start();
  controlPlane = await openControlPlane(
    {
      ...{ databaseUrl, databaseConnections: 5, plans: planCatalogueOf([]), secretKey: new SecretKey(randomBytes(32)) },
      hostUrl: `unix:${join(daemon.root, 'run', 'host.sock')}`,
      hostToken: daemon.token,
      settings: { ...SETTINGS, modelEndpoints: { openai: [models.url], anthropic: [] } },
      oidc: null,
    },
    pino({ level: 'trace' }, scan.into(undefined)),
    { mailer: { send: () => Promise.resolve() } },
  );
  const { db } = controlPlane.context;
  const names = { ownerEmail: 'o@example.test', ownerName: 'O', orgName: 'Org', projectName: 'P', keyName: 'k' };
  const made = await bootstrap(db, names);
  ({ token } = await signInAs(db, made.userId));
  org = `/v1/orgs/${made.orgId}`;
  projectId = String(made.projectId);
});
after(async () => {
  await controlPlane.close();
  await daemon.remove();
  await models.close();
  await postgres.stop();
});

async function call(method: Method, path: string, body?: object): Promise<Answer['body']> {
  const answer = await callDirectly(controlPlane.calls, method, path, { token, body });
  assert.ok(answer.status < 300, `${method} ${path}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

/** Stores a key; null deletes it. */
async function setKey(text: string | null): Promise<void> {
  const path = `${org}/projects/${projectId}/agent-credentials/agent_one`;
  if (text === null) await call('DELETE', path);
  else await call('PUT', path, { apiKey: scan.note(text, 'a model key') });
}

/** Calls the model from within the guest; resolves with status and credential as it arrived. */
async function askModel(id: string, prompt: string): Promise<[string, string | null | undefined]> {
  const record = await readFile(join(daemon.root, 'host', 'vms', id, 'record.json'), 'utf8');
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
  return [stdout, models.calls.find((one) => one.prompt.includes(prompt))?.credential];
}

test('a guest calls models with the key of its project, as the API has it now, and never sees it', async () => {
  const { sandbox } = await call('POST', `${org}/sandboxes`, { agent: 'agent_one', projectId });
  const id: string = sandbox.id;
  const becomes = (status: string): Promise<void> =>
    untilTrue(
      `the sandbox is ${status}`,
      async () => (await call('GET', `/v1/sandboxes/${id}`)).sandbox.status === status,
    );
  await becomes('ready');
  await setKey('sk-first-0123456789');
  assert.equal((await call('POST', `/v1/sandboxes/${id}/agent-sessions`)).bridgeState, 'ready');
  assert.deepEqual(await askModel(id, 'created'), ['200', 'Bearer sk-first-0123456789']);

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

  await daemon.end('SIGKILL');
  await daemon.start();
  assert.deepEqual(await askModel(id, 'restarted'), ['200', 'Bearer sk-third-0123456789']);
  await call('POST', `/v1/sandboxes/${id}/destroy`);
  await becomes('deleted');
  await scan.check(databaseUrl);
  assert.doesNotMatch(daemon.log.join('\n'), /sk-(first|second|third)/);
});
