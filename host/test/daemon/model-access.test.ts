// Model access of VMs through the host daemon, on the fake driver: guests call models with a key
// that never enters them and is never written.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { DaemonFixture } from './daemon-process.ts';
import { vmIdOf } from '../vm/lifecycle/lifecycle-fixture.ts';
import { ModelServer } from '../../../e2e/model-servers/server.ts';

const SPEC = { vcpu: 1, memoryMib: 1_024, diskGib: 10, hostname: 'berth', sshAuthorizedKeys: [] };
const KEY = 'sk-never-in-the-guest';
const id = vmIdOf('m');

let models: ModelServer;
let daemon: DaemonFixture;
before(async () => {
  models = await ModelServer.start();
  daemon = await DaemonFixture.make(['--driver', 'fake', '--pool-max', '0']);
  await daemon.start();
  await ok('PUT', `/vms/${id}`, { epoch: 1, spec: SPEC });
});
after(async () => {
  await daemon.remove();
  await models.close();
});

async function ok(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
  const { status, body: answer } = await daemon.call(method, path, body);
  assert.equal(status, 200, JSON.stringify(answer));
  return answer as Record<string, unknown>;
}

function accessOf(key: string | null, { epoch = 1, asOfMs = 1 } = {}) {
  const agent = key === null ? null : { endpoint: models.url, key };
  return { epoch, orgId: 'org_1', asOfMs, version: `v${asOfMs}`, agents: { agent_one: agent, agent_two: agent } };
}
const setAccess = (access: object) => daemon.call('PUT', `/vms/${id}/model-access`, access);

/** Runs a command in the guest; resolves with its output. */
async function inGuest(command: string): Promise<string> {
  const { stdout } = await ok('POST', `/vms/${id}/exec`, { command, timeoutSeconds: 60 });
  return String(stdout);
}

/**
 * Asks the model from within the guest, like an agent also while nothing listens; resolves with the
 * status and the text.
 */
async function askModel(prompt: string, { retries = true } = {}): Promise<string> {
  const body = { model: 'm', stream: true, tools: [{}], messages: [{ role: 'user', content: prompt }] };
  const url = `${await guestUrl()}/anthropic/v1/messages`;
  const script = `(async () => {
    for (;;) {
      try {
        const response = await fetch(...${JSON.stringify([url, { method: 'POST', body: JSON.stringify(body) }])});
        return response.status + await response.text();
      } catch (error) {
        if (!${retries} || error.cause.code !== 'ECONNREFUSED') return error.cause.code;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  })().then((text) => process.stdout.write(text))`;
  return await inGuest(`/node -e "eval(atob('${Buffer.from(script).toString('base64')}'))"`);
}

/** The fake driver's place, from the port of the guest daemon. */
async function guestUrl(): Promise<string> {
  const record = JSON.parse(await readFile(join(daemon.root, 'host', 'vms', id, 'record.json'), 'utf8')) as {
    driverState: { guest: { port: number } };
  };
  return `http://127.0.0.2:${record.driverState.guest.port}`;
}

test('a guest calls the model with the key of its project, and finds it nowhere', async () => {
  assert.equal(
    await askModel('a\n@say one', { retries: false }),
    'ECONNREFUSED',
    'nothing listens before the first access',
  );
  assert.equal((await setAccess(accessOf(KEY))).status, 200);
  assert.match(await askModel('b\n@say one'), /^200.*"text":"one"/s);
  assert.equal(models.calls.at(-1)?.credential, KEY);

  const inside = await inGuest('env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" "\\n"');
  assert.ok(inside.length > 0 && !inside.includes(KEY), 'environment and process list of the guest');
  await assertWrittenNowhere();
});

/** Neither in a file of the data folder, the VM's included, nor in a log or process list. */
async function assertWrittenNowhere(): Promise<void> {
  const found = await promisify(execFile)('grep', ['-rIlF', '--devices=skip', KEY, daemon.root]).catch(
    (error: { code: number; stdout: string }) => error,
  );
  assert.deepEqual([found.stdout, 'code' in found ? found.code : 0], ['', 1]);
  assert.ok(!daemon.log.join('\n').includes(KEY), 'the log of the host daemon');
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && name !== String(process.pid))) {
    for (const file of ['cmdline', 'environ']) {
      const text = await readFile(join('/proc', pid, file), 'latin1').catch(() => '');
      assert.ok(!text.includes(KEY), `${file} of process ${pid}`);
    }
  }
}

test('an older access, an older epoch and a body of another form change nothing', async () => {
  assert.equal((await setAccess(accessOf('newer', { asOfMs: 10 }))).status, 200);
  assert.equal((await setAccess(accessOf('older', { asOfMs: 9 }))).status, 200);
  await askModel('c\n@say two');
  assert.equal(models.calls.at(-1)?.credential, 'newer');
  const refused = await setAccess({ ...accessOf('x', { asOfMs: 11 }), agents: { agent_one: { key: 'sk-malformed' } } });
  assert.equal(refused.status, 400);
  assert.ok(!JSON.stringify(refused.body).includes('sk-malformed'));
  assert.equal((await setAccess(accessOf(null, { asOfMs: 12 }))).status, 200);
  assert.match(await askModel('d\n@say three'), /^403.*no model key for this agent/s);
});

test('after a restart of the daemon a request waits for the key', async () => {
  await setAccess(accessOf(KEY, { asOfMs: 20 }));
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    await daemon.end(signal);
    await daemon.start();
    const waiting = askModel(`${signal}\n@say waited`);
    // The time of the key says nothing to a new daemon: it has none.
    assert.equal((await setAccess(accessOf(KEY, { asOfMs: 1 }))).status, 200);
    assert.match(await waiting, /^200.*waited/s);
    assert.equal(models.callsFor(signal), 1);
  }
});

test('a sleep forgets the key, and a wake listens for it again', async () => {
  await ok('POST', `/vms/${id}/sleep`, { epoch: 2 });
  assert.equal((await setAccess(accessOf(KEY, { epoch: 2 }))).status, 409);
  await ok('POST', `/vms/${id}/wake`, { epoch: 3, spec: SPEC });
  const stale = await setAccess(accessOf(KEY, { epoch: 2 }));
  assert.deepEqual([stale.status, (stale.body as { error: { code: string } }).error.code], [409, 'stale_epoch']);
  const waiting = askModel('e\n@say awake');
  assert.equal((await setAccess(accessOf('sk-after-the-wake', { epoch: 3 }))).status, 200);
  assert.match(await waiting, /^200.*awake/s);
  assert.equal(models.calls.at(-1)?.credential, 'sk-after-the-wake');
  await assertWrittenNowhere();
  await ok('DELETE', `/vms/${id}?epoch=4`);
  assert.equal((await setAccess(accessOf(KEY, { epoch: 4 }))).status, 404);
});
