import assert from 'node:assert/strict';
import { access, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { OperatorFailure } from '../../../src/output/failure.ts';
import { instancePaths, prepareInstance, type InstancePaths } from '../../../src/supervisor/instance.ts';
import { copyOperatorSecrets, withOperatorSecrets } from '../../../src/roles/control-plane/operator-secrets.ts';

const USER = { name: 'nobody', uid: 65_534, gid: 65_534 };

let folder: string;
let file: string;
let copy: string;
let paths: InstancePaths;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-secrets-'));
  file = join(folder, 'given');
  paths = instancePaths(join(folder, 'data'));
  copy = join(paths.secrets, 'oidc-client-secret');
  await prepareInstance(paths, USER);
});
after(() => rm(folder, { recursive: true, force: true }));

test('a secret readable only by root is copied for the API and removed once it is not named', async () => {
  await writeFile(file, 'a secret\n', { mode: 0o600 });
  await copyOperatorSecrets({ BERTH_OIDC_CLIENT_SECRET_FILE: file }, paths, USER);
  assert.equal(await readFile(copy, 'utf8'), 'a secret\n');
  const { mode, uid, gid } = await stat(copy);
  assert.deepEqual([mode & 0o777, uid, gid], [0o640, 0, USER.gid]);
  await copyOperatorSecrets({ BERTH_OIDC_CLIENT_SECRET_FILE: '' }, paths, USER);
  await assert.rejects(access(copy), { code: 'ENOENT' });
});

test('the API sees the copies at their paths, and nothing of unnamed files', () => {
  const api = { user: USER, binds: [], command: ['node'] as [string], environment: { A: 'b' }, workingFolder: '/app' };
  assert.deepEqual(withOperatorSecrets({}, paths, api), api);
  const seen = withOperatorSecrets(
    { BERTH_OIDC_CLIENT_SECRET_FILE: '/root/s', BERTH_SMTP_URL_FILE: '/root/m' },
    paths,
    api,
  );
  assert.deepEqual(seen.binds, [
    { from: join(paths.secrets, 'smtp-url'), to: '/smtp-url' },
    { from: copy, to: '/oidc-client-secret' },
  ]);
  assert.deepEqual(seen.environment, {
    A: 'b',
    BERTH_SMTP_URL_FILE: '/smtp-url',
    BERTH_OIDC_CLIENT_SECRET_FILE: '/oidc-client-secret',
  });
});

test("the payment provider's secrets are copied too", () => {
  const api = { user: USER, binds: [], command: ['node'] as [string], environment: {}, workingFolder: '/app' };
  const seen = withOperatorSecrets(
    { BERTH_STRIPE_SECRET_KEY_FILE: '/root/k', BERTH_STRIPE_WEBHOOK_SECRET_FILE: '/root/w' },
    paths,
    api,
  );
  assert.deepEqual(seen.environment, {
    BERTH_STRIPE_SECRET_KEY_FILE: '/stripe-secret-key',
    BERTH_STRIPE_WEBHOOK_SECRET_FILE: '/stripe-webhook-secret',
  });
});

test('a missing or empty file is refused with its variable', async () => {
  await writeFile(file, '\n');
  for (const wrong of [file, join(folder, 'none')]) {
    await assert.rejects(copyOperatorSecrets({ BERTH_SMTP_URL_FILE: wrong }, paths, USER), (error: Error) => {
      return (
        error instanceof OperatorFailure &&
        error.message.includes('BERTH_SMTP_URL_FILE') &&
        error.message.includes(wrong)
      );
    });
  }
});
