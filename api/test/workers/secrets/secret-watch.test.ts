// Rotation of the secret key inside the API: files are loaded while it runs, and stored values are
// sealed again.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { afterEach, before, after, test } from 'node:test';
import { sql } from 'kysely';
import { Secret, TOTP } from 'otpauth';
import { HostClients, hostTokenIds } from '../../../src/hosts/clients.ts';
import { openText, sealText } from '../../../src/services/context/sealed.ts';
import { SecretKey } from '../../../src/services/context/secret-key.ts';
import { resealAll } from '../../../src/services/secrets/reseal.ts';
import { secretsState } from '../../../src/services/secrets/status.ts';
import { Factors } from '../../../src/sign-in/factors.ts';
import { newId } from '../../../src/store/database/ids.ts';
import { SEALED_COLUMNS } from '../../../src/store/secrets/sealed-values.ts';
import { SecretWatch, type SecretsNow } from '../../../src/workers/secrets/secret-watch.ts';
import type { StepContext } from '../../../src/workers/steps/step-context.ts';
import { startApi, type TestApi } from '../../world/api.ts';

const VALUES = 250;
const LEADER = { isLeader: () => Promise.resolve(true) };
const never = new AbortController().signal;

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());
afterEach(async () => {
  await sql`update project set repo_credentials_sealed = null`.execute(api.db);
  await sql`delete from totp`.execute(api.db);
  await sql`delete from secret_replica`.execute(api.db);
  await sql`delete from secret_key_use`.execute(api.db);
});

/** Projects with credentials under the key; returns their ids. */
async function sealProjects(key: SecretKey, count = VALUES): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newId('project'));
  await api.db
    .insertInto('project')
    .values(
      ids.map((id) => ({
        id,
        org_id: api.orgId,
        name: id,
        use_case: 'other',
        repo_credentials_sealed: sealText(key.keysFor('repo-credentials'), id, `token of ${id}`),
      })),
    )
    .execute();
  return ids;
}

async function opened(key: SecretKey): Promise<number> {
  const rows = await api.db
    .selectFrom('project')
    .select(['id', 'repo_credentials_sealed as sealed'])
    .where('repo_credentials_sealed', 'is not', null)
    .execute();
  for (const { id, sealed } of rows)
    assert.equal(openText(key.keysFor('repo-credentials'), id, sealed ?? Buffer.of()), `token of ${id}`);
  return rows.length;
}

function watchOf(
  key: SecretKey,
  hosts: HostClients,
  reread: () => SecretsNow,
  log: StepContext['log'] = api.context.log,
): SecretWatch {
  const { db } = api.context;
  return new SecretWatch({
    context: { db, log, stopping: never },
    secretKey: key,
    hosts,
    replicaId: newId('user'),
    reread,
  });
}

test('a rotation seals every value again, also after it was interrupted', async () => {
  const [old, fresh] = [randomBytes(32), randomBytes(32)];
  await sealProjects(new SecretKey(old));
  const rotated = new SecretKey(fresh, old);
  const stopping = new AbortController();
  // Ends after the first batch, as a killed process would.
  const db = api.db.withPlugin({
    transformQuery: ({ node }) => node,
    transformResult: ({ result }) => {
      stopping.abort();
      return Promise.resolve(result);
    },
  });
  const { sealed } = await resealAll({ db, secretKey: rotated }, stopping.signal);
  assert.ok(sealed > 0 && sealed < VALUES, `${sealed} sealed before the interruption`);
  assert.equal(await opened(rotated), VALUES, 'every value opens in between');
  assert.deepEqual(await resealAll({ db: api.db, secretKey: rotated }, never), {
    sealed: VALUES - sealed,
    unreadable: 0,
    why: null,
  });
  assert.equal(await opened(new SecretKey(fresh)), VALUES, 'without the former key');
});

test('a rotation covers every sealed column of the tables', async () => {
  const { rows } = await sql<{ name: string }>`
    select table_name || '.' || column_name as name from information_schema.columns
    where table_schema = 'public' and column_name like '%sealed' order by name`.execute(api.db);
  const covered = SEALED_COLUMNS.map(({ table, column }) => `${table}.${column}`);
  assert.deepEqual(
    rows.map(({ name }) => name),
    covered.toSorted(),
  );
});

test('two replicas that seal at once leave every value readable', async () => {
  const [old, fresh] = [randomBytes(32), randomBytes(32)];
  await sealProjects(new SecretKey(old));
  const passes = [0, 1].map(() => resealAll({ db: api.db, secretKey: new SecretKey(fresh, old) }, never));
  await Promise.all(passes);
  assert.equal(await opened(new SecretKey(fresh, old)), VALUES);
});

test('an enrolled authenticator app signs in with the new key alone after a rotation', async () => {
  const [old, fresh] = [randomBytes(32), randomBytes(32)];
  const { userId } = await api.makeSession({ role: null });
  const factorsWith = (secretKey: SecretKey): Factors =>
    new Factors({ db: api.db, secretKey, settings: api.context.settings, throttle: () => Promise.resolve() });
  const before = factorsWith(new SecretKey(old));
  const { secret, sealed } = before.beginTotp({ userId, email: 'a@example.test' });
  const totp = new TOTP({ secret: Secret.fromBase32(secret) });
  await before.enableTotp(userId, { sealed, code: totp.generate() }, { address: '192.0.2.1', userAgent: null });
  assert.ok((await resealAll({ db: api.db, secretKey: new SecretKey(fresh, old) }, never)).sealed >= 1);
  // Each code works once: that of the next time step.
  const code = totp.generate({ timestamp: Date.now() + 30_000 });
  assert.deepEqual(await factorsWith(new SecretKey(fresh)).useCode(userId, code), { kind: 'totp' });
});

test('a value of a lost key stays as it is, and its key id is reported', async () => {
  const [lost, fresh] = [new SecretKey(randomBytes(32)), new SecretKey(randomBytes(32))];
  await sealProjects(lost, 3);
  const { sealed, unreadable, why } = await resealAll({ db: api.db, secretKey: fresh }, never);
  assert.deepEqual([sealed, unreadable], [0, 3]);
  assert.match(why ?? '', new RegExp(`the secret key has no line with the id ${lost.ids[0]}`));
  assert.equal(await opened(lost), 3);
  assert.equal((await secretsState(api.db, fresh, [])).otherValues, 3);
});

test('changed files are loaded, reported and used, and a broken file changes nothing', async () => {
  const [old, fresh] = [randomBytes(32), randomBytes(32)];
  const key = new SecretKey(old);
  const hosts = new HostClients('token-a', 8);
  let now: SecretsNow | Error = { secretKey: new SecretKey(old), hostTokens: ['token-a'] };
  const watch = watchOf(key, hosts, () => {
    if (now instanceof Error) throw now;
    return now;
  });
  await sealProjects(key, 2);
  await watch.tick();
  await watch.reseal(LEADER);

  now = { secretKey: new SecretKey(fresh, old), hostTokens: ['token-b', 'token-a'] };
  await watch.tick();
  const rotated = new SecretKey(fresh, old);
  const tokens = hostTokenIds(['token-b', 'token-a']);
  assert.deepEqual([key.ids, hosts.tokenIds], [rotated.ids, tokens]);
  const between = await secretsState(api.db, rotated, tokens);
  assert.deepEqual(between.replicas, [{ secretKeyIds: rotated.ids, hostTokenIds: tokens }]);
  assert.deepEqual(
    between.secretKeys.map(({ current, values }) => ({ current, values })),
    [
      { current: true, values: 0 },
      { current: false, values: 2 },
    ],
  );

  await watch.reseal(LEADER);
  const [, former] = (await secretsState(api.db, rotated, tokens)).secretKeys;
  assert.equal(former?.values, 0);
  assert.ok((former?.neededSeconds ?? 0) > 29 * 86_400, 'links and sign-ins of the former key live for 30 days');
  await sql`update secret_key_use set current_at = now() - interval '31 days' where key_id = ${former?.id}`.execute(
    api.db,
  );
  assert.equal((await secretsState(api.db, rotated, tokens)).secretKeys[1]?.neededSeconds, 0);

  now = new Error('the file is empty');
  await watch.tick();
  assert.deepEqual(key.ids, rotated.ids);
  await watch.close();
  assert.deepEqual((await secretsState(api.db, rotated, tokens)).replicas, []);
});

test('a replica that cannot read a file stays visible with its former key, and logs that once', async () => {
  const [old, fresh] = [randomBytes(32), randomBytes(32)];
  const logged: unknown[][] = [];
  const log = { ...api.context.log, error: (...entry: unknown[]) => logged.push(entry) } as typeof api.context.log;
  const hosts = new HostClients('token-a', 8);
  const unreadable = (): never => {
    throw new Error('EACCES: permission denied');
  };
  const watch = watchOf(new SecretKey(old), hosts, unreadable, log);
  await watch.tick();
  await watch.tick();
  assert.equal(logged.length, 1);
  assert.match(String(logged[0]?.[1]), /cannot load the secret files: the loaded secrets stay in use/);
  const { replicas, secretKeys } = await secretsState(api.db, new SecretKey(fresh, old), hosts.tokenIds);
  assert.deepEqual(replicas, [{ secretKeyIds: new SecretKey(old).ids, hostTokenIds: hosts.tokenIds }]);
  assert.ok((secretKeys[1]?.neededSeconds ?? 0) > 29 * 86_400, 'the former key still signs');
  await watch.close();
});
