// Activity signals: write frequency, and continuous use.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { sandboxStatus, SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import { trackActivity, recordActivity } from '../../../src/services/sandboxes/activity-signal.ts';
import type { SandboxRow } from '../../../src/store/database/schema.ts';
import { startApi, type TestApi } from '../../world/api.ts';
import { deadlineOf } from '../../../../os/test/until.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

const secondsAgo = (seconds: number): Date => new Date(Date.now() - seconds * 1_000);
const activeAt = async (id: string): Promise<Date> =>
  (await api.db.selectFrom('sandbox').select('last_active_at').where('id', '=', id).executeTakeFirstOrThrow())
    .last_active_at;
const write = (id: string, at: Date): Promise<unknown> =>
  api.db.updateTable('sandbox').set({ last_active_at: at }).where('id', '=', id).execute();

async function untilAfter(id: string, at: Date): Promise<void> {
  const deadline = AbortSignal.timeout(deadlineOf(20_000));
  while ((await activeAt(id)) <= at) await delay(10, undefined, { signal: deadline });
}

for (const status of sandboxStatus.options) {
  const { awake } = SANDBOX_STATES[status];
  test(`activity of a sandbox that is ${status} is ${awake ? '' : 'not '}recorded`, async () => {
    const row = await api.makeSandbox(status, { last_active_at: secondsAgo(60) });
    assert.equal(await recordActivity(api.context, row, 'exec'), awake);
    assert.equal((await activeAt(row.id)) > row.last_active_at, awake);
    const { body } = await api.call('GET', `/v1/sandboxes/${row.id}`);
    assert.equal(body.sandbox.lastActiveBy, awake ? 'exec' : null);
  });
}

test('a second activity within five seconds is not written, cached or not', async () => {
  const row = await api.makeSandbox('ready', { last_active_at: secondsAgo(60) });
  await recordActivity(api.context, row, 'exec');
  const first = await activeAt(row.id);
  assert.equal(await recordActivity(api.context, row, 'exec'), true);
  assert.equal(await recordActivity(api.context, { ...row, last_active_at: first }, 'cpu'), true);
  assert.deepEqual(await activeAt(row.id), first);
});

test('continuous use is recorded repeatedly, once more at its end, and not afterwards', async (t) => {
  const row: SandboxRow = await api.makeSandbox('ready');
  t.mock.timers.enable({ apis: ['setInterval'] });
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const use = trackActivity(api.context, row.id, 'exec');
  for (let round = 0; round < 2; round += 1) {
    const before = secondsAgo(300);
    await write(row.id, before);
    t.mock.timers.tick(20_000);
    await untilAfter(row.id, before);
  }
  const last = secondsAgo(300);
  await write(row.id, last);
  now = 50_000;
  use.end();
  await untilAfter(row.id, last);
  await write(row.id, last);
  t.mock.timers.tick(60_000);
  // Another hold begins and is recorded: if the first were still active, its statement would have
  // come earlier.
  const other = await api.makeSandbox('ready', { last_active_at: last });
  trackActivity(api.context, other.id, 'exec');
  t.mock.timers.tick(20_000);
  await untilAfter(other.id, last);
  assert.deepEqual(await activeAt(row.id), last);
});
