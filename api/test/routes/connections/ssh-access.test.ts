// SSH details of a sandbox: the host key kept by its host, and the authorised key.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';

const run = promisify(execFile);
const HOST_KEY = `ssh-ed25519 ${'B'.repeat(68)}`;

let api: TestApi;
let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-ssh-access-'));
  api = await startApi({ durable: false });
  api.front.sshHostKey = () => ({ publicKey: HOST_KEY });
});
after(async () => {
  await api.close();
  await rm(folder, { recursive: true });
});

const ask = (id: string): Promise<Answer> => api.call('GET', `/v1/sandboxes/${id}/ssh`);

for (const type of ['ed25519', 'ecdsa', 'rsa']) {
  test(`the fingerprint of an authorised ${type} key equals that of ssh-keygen`, async () => {
    const file = join(folder, type);
    await run('ssh-keygen', ['-q', '-t', type, '-N', '', '-C', 'a comment', '-f', file]);
    const [, fingerprint] = (await run('ssh-keygen', ['-l', '-f', `${file}.pub`])).stdout.split(' ');
    const line = (await readFile(`${file}.pub`, 'utf8')).trim();
    const { id } = await api.makeSandbox('ready', { ssh_public_key: line });
    const { status, body } = await ask(id);
    assert.deepEqual(
      [status, body],
      [200, { ssh: { user: 'berth', hostKey: HOST_KEY, authorizedKeyFingerprint: fingerprint } }],
    );
  });
}

test('a missing authorised key is reported; a sleeping sandbox responds without a wake', async () => {
  for (const status of ['ready', 'stopped'] as const) {
    const { id } = await api.makeSandbox(status);
    assert.deepEqual((await ask(id)).body.ssh, { user: 'berth', hostKey: HOST_KEY, authorizedKeyFingerprint: null });
    assert.deepEqual(api.steps, []);
  }
});

test('a sandbox without a VM is 409; a missing host key or an absent host is 503', async () => {
  const without = await api.makeSandbox('failed', { host_id: null, status_reason_code: 'insufficient_capacity' });
  assert.deepEqual(
    [(await ask(without.id)).status, (await ask(without.id)).body.error.code],
    [409, 'sandbox_state_conflict'],
  );
  const { id } = await api.makeSandbox('ready');
  const { sshHostKey } = api.front;
  for (const [script, code] of [
    [
      () => {
        throw new ExecRefusal('vm_not_found', 'no host key');
      },
      'sandbox_unreachable',
    ],
    [() => ({ publicKey: 'ssh-ed25519 AAAA\nsbx_other ssh-ed25519 AAAA' }), 'host_unavailable'],
  ] as const) {
    api.front.sshHostKey = script;
    const { status, body } = await ask(id);
    assert.deepEqual([status, body.error.code], [503, code]);
  }
  api.front.sshHostKey = sshHostKey;
});

test('a caller without the permission to connect gets 403', async () => {
  const { id } = await api.makeSandbox('ready');
  const { token } = await api.makeSession({ role: 'viewer' });
  const { status, body } = await api.call('GET', `/v1/sandboxes/${id}/ssh`, { token });
  assert.deepEqual([status, body.error.code], [403, 'permission_denied']);
});
