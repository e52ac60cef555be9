// Old idempotency keys are forgotten, batch by batch, by the one that leads.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { sql } from 'kysely';
import { deleteOldIdempotencyKeys } from '../../src/store/idempotency.ts';
import { removeOldRows } from '../../src/workers/retention.ts';
import type { StepContext } from '../../src/workers/step-context.ts';
import { startApi, type TestApi } from '../api.ts';

let api: TestApi;
let context: Pick<StepContext, 'db' | 'stopping'>;
before(async () => {
  api = await startApi({ durable: false });
  context = { db: api.db, stopping: new AbortController().signal };
});
after(() => api.close());
beforeEach(async () => {
  await api.db.deleteFrom('idempotency_key').execute();
  await add('young', 7, '23 hours 59 minutes');
});

const add = (name: string, count: number, age: string) =>
  sql`
    insert into idempotency_key (org_id, key, body_sha256, sandbox_id, created_at)
    select ${api.orgId}, ${name} || n, sha256('x'), 'sbx_x', now() - ${age}::interval from generate_series(1, ${count}::int) n`.execute(
    api.db,
  );
const left = async (): Promise<number> => (await api.db.selectFrom('idempotency_key').select('key').execute()).length;
const session = (leads: boolean) => ({ leads: () => Promise.resolve(leads) });

test('keys older than 24 hours go, however many batches they are; younger ones stay', async () => {
  await add('old', 1_234, '24 hours 1 second');
  await removeOldRows(context, session(true));
  assert.equal(await left(), 7);
});

test('a replica that does not lead removes nothing', async () => {
  await add('old', 3, '2 days');
  await removeOldRows(context, session(false));
  assert.equal(await left(), 10);
});

test('a batch takes the oldest, as many as it may, and passes over a key in use', async () => {
  await add('oldest', 2, '3 days');
  await add('old', 2, '2 days');
  assert.equal(await deleteOldIdempotencyKeys(api.db, 1), 1);
  await api.db.transaction().execute(async (trx) => {
    await sql`select from idempotency_key where key like 'oldest%' for update`.execute(trx);
    assert.equal(await deleteOldIdempotencyKeys(api.db, 10), 2);
  });
  const rest = await api.db.selectFrom('idempotency_key').select('key').where('key', 'not like', 'young%').execute();
  assert.deepEqual(
    rest.map(({ key }) => key.slice(0, 6)),
    ['oldest'],
  );
});
