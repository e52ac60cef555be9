import assert from 'node:assert/strict';
import { access, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { OperatorFailure } from '../../../src/output/failure.ts';
import { instancePaths, prepareInstance, type InstancePaths } from '../../../src/supervisor/instance.ts';
import { copyPlansFile } from '../../../src/roles/control-plane/plans-file.ts';

const USER = { name: 'nobody', uid: 65_534, gid: 65_534 };
const PLAN = {
  id: 'starter',
  name: 'Starter',
  tier: 'standard',
  concurrentSandboxes: 5,
  largestSize: 'medium',
  ephemeralSessionSeconds: 3_600,
  includedMachineHours: 100,
  overageUsdPerMachineHour: 0.25,
  activityRetentionDays: 30,
  orgs: 3,
  requestsPerMinute: 1_200,
  projects: 20,
  apiKeys: null,
  priceId: 'price_starter',
};

let folder: string;
let file: string;
let paths: InstancePaths;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-plans-'));
  file = join(folder, 'given.json');
  paths = instancePaths(join(folder, 'data'));
  await prepareInstance(paths, USER);
});
after(() => rm(folder, { recursive: true, force: true }));

test('a plan catalogue readable only by root is copied for the services and removed once not given', async () => {
  await writeFile(file, JSON.stringify({ plans: [PLAN] }), { mode: 0o600 });
  await copyPlansFile(file, paths, USER);
  assert.deepEqual(JSON.parse(await readFile(paths.plans, 'utf8')), { plans: [PLAN] });
  const copy = await stat(paths.plans);
  assert.deepEqual([copy.mode & 0o777, copy.uid, copy.gid], [0o640, 0, USER.gid]);
  await copyPlansFile(null, paths, USER);
  await assert.rejects(access(paths.plans), { code: 'ENOENT' });
});

for (const [what, content, message] of [
  ['is no JSON', '{', /cannot use the plan catalogue .*given\.json: .*JSON/],
  ['has an unknown size', JSON.stringify({ plans: [{ ...PLAN, largestSize: 'huge' }] }), /plans\.0\.largestSize/],
  ['has an unknown field', JSON.stringify({ plans: [PLAN], price: 1 }), /the file: .*price/],
] as const) {
  test(`a plan catalogue that ${what} is refused with its name and position, and not copied`, async () => {
    await writeFile(file, content);
    const refused = (error: unknown): boolean => error instanceof OperatorFailure && message.test(error.message);
    await assert.rejects(copyPlansFile(file, paths, USER), refused);
    await assert.rejects(access(paths.plans), { code: 'ENOENT' });
  });
}

test('a missing plan catalogue is refused by name', async () => {
  await assert.rejects(
    copyPlansFile(join(folder, 'none.json'), paths, USER),
    /cannot use the plan catalogue .*none\.json: ENOENT/,
  );
});
