// What the control plane is told by its environment.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { SELF_HOSTED_PLAN, type Plan } from '@berth/contract/plans.ts';
import { readDatabaseConfig, readServeConfig } from '../src/config.ts';

let folder: string;
let enough: Record<string, string>;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-config-'));
  await writeFile(join(folder, 'token'), 'secret\n');
  await writeFile(join(folder, 'empty'), '\n');
  await writeFile(join(folder, 'secret-key'), randomBytes(32).toString('base64url'));
  enough = {
    BERTH_DATABASE_URL: 'postgres://x',
    BERTH_HOST_URL: 'unix:/run/host.sock',
    BERTH_HOST_TOKEN_FILE: join(folder, 'token'),
    BERTH_SECRET_KEY_FILE: join(folder, 'secret-key'),
  };
});
after(() => rm(folder, { recursive: true }));

test('what is not given has a default', () => {
  assert.deepEqual(readServeConfig(enough), {
    databaseUrl: 'postgres://x',
    logLevel: 'info',
    listenAddress: '127.0.0.1',
    port: 4_800,
    databaseConnections: 20,
    hostUrl: 'unix:/run/host.sock',
    hostToken: 'secret',
    plans: new Map([['self-hosted', SELF_HOSTED_PLAN]]),
    crashAt: null,
  });
});

test('DATABASE_URL stands in for BERTH_DATABASE_URL, which wins; an empty variable is none', () => {
  assert.equal(readDatabaseConfig({ DATABASE_URL: 'postgres://y', BERTH_DATABASE_URL: '' }).databaseUrl, 'postgres://y');
  assert.equal(readDatabaseConfig({ DATABASE_URL: 'postgres://y', BERTH_DATABASE_URL: 'postgres://x' }).databaseUrl, 'postgres://x');
});

for (const [variable, value] of Object.entries({
  BERTH_DATABASE_URL: 'mysql://x',
  BERTH_PORT: 'http',
  BERTH_HOST_URL: 'host:80',
  BERTH_LOG_LEVEL: 'loud',
  BERTH_DATABASE_CONNECTIONS: '0',
})) {
  test(`a wrong ${variable} is refused by name`, () => {
    assert.throws(() => readServeConfig({ ...enough, [variable]: value }), new RegExp(variable));
  });
}

test('an empty token file is refused by name', () => {
  assert.throws(() => readServeConfig({ ...enough, BERTH_HOST_TOKEN_FILE: join(folder, 'empty') }), /BERTH_HOST_TOKEN_FILE/);
});

const STARTER: Plan = {
  id: 'starter',
  name: 'Starter',
  tier: 'standard',
  concurrentSandboxes: 5,
  largestSize: 'medium',
  ephemeralSessionSeconds: 3_600,
};

test('the plans of BERTH_PLANS_FILE stand beside the self-hosted one, or in its place', async () => {
  const file = join(folder, 'plans.json');
  const read = () => readServeConfig({ ...enough, BERTH_PLANS_FILE: file }).plans;
  await writeFile(file, JSON.stringify({ plans: [STARTER] }));
  assert.deepEqual([...read().values()], [SELF_HOSTED_PLAN, STARTER]);
  const capped = { ...SELF_HOSTED_PLAN, concurrentSandboxes: 2 };
  await writeFile(file, JSON.stringify({ plans: [STARTER, capped] }));
  assert.deepEqual(read().get('self-hosted'), capped);
});

const WRONG_PLANS: [what: string, content: string, message: RegExp][] = [
  ['that is no JSON', '{"plans":', /plans\.json: .*JSON/],
  ['without plans', '{}', /plans\.json: plans: /],
  ['with an empty list', '{"plans":[]}', /plans\.json: plans: /],
  ['with an unknown field', JSON.stringify({ plans: [STARTER], prices: [] }), /plans\.json: the whole: .*prices/],
  ['with an unknown size', JSON.stringify({ plans: [{ ...STARTER, largestSize: 'huge' }] }), /plans\.json: plans\.0\.largestSize: /],
  ['with a cap of none', JSON.stringify({ plans: [{ ...STARTER, concurrentSandboxes: 0 }] }), /plans\.0\.concurrentSandboxes: /],
  ['without a cap said', JSON.stringify({ plans: [{ ...STARTER, concurrentSandboxes: undefined }] }), /plans\.0\.concurrentSandboxes: /],
  ['with a wrong id', JSON.stringify({ plans: [{ ...STARTER, id: 'My Plan' }] }), /plans\.0\.id: must be lowercase/],
  ['with a plan that is there twice', JSON.stringify({ plans: [STARTER, STARTER] }), /the plan starter is there twice/],
];

for (const [what, content, message] of WRONG_PLANS) {
  test(`a plans file ${what} stops the start with the variable, the file and the place`, async () => {
    const file = join(folder, 'plans.json');
    await writeFile(file, content);
    const refused = (error: Error): boolean => /BERTH_PLANS_FILE: /.test(error.message) && message.test(error.message);
    assert.throws(() => readServeConfig({ ...enough, BERTH_PLANS_FILE: file }), refused);
  });
}

test('a plans file that is not there stops the start by name', () => {
  assert.throws(
    () => readServeConfig({ ...enough, BERTH_PLANS_FILE: join(folder, 'none.json') }),
    /BERTH_PLANS_FILE: .*none\.json.*ENOENT/,
  );
});
