// Waits for host capacity with a real database and its notices.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CodedError } from '../../../src/rules/coded-error.ts';
import { withCapacity } from '../../../src/services/hosts/capacity-wait.ts';
import { startApi, type TestApi } from '../../world/api.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

const HELD = { respondAsync: false, signal: new AbortController().signal };
const notified = { next: async () => true, close: () => {} };

/** Runs an attempt that lacks capacity `short` times; returns the attempts made and the outcome. */
async function run(short: number, answer = HELD): Promise<[attempts: number, watched: string[], outcome: string]> {
  const watched: string[] = [];
  let attempts = 0;
  const changes = {
    watch: (id: string) => {
      watched.push(id);
      return notified;
    },
  };
  const outcome = await withCapacity({ db: api.db, changes: changes as never }, answer, async () => {
    attempts += 1;
    if (attempts <= short) throw new CodedError('insufficient_capacity', 'full');
    return 'reserved';
  }).catch((error: CodedError) => error.code);
  return [attempts, watched, outcome];
}

test('a request without capacity is refused at once unless a sleep or destroy may free it', async () => {
  assert.deepEqual(await run(9), [1, [], 'insufficient_capacity']);
  await api.makeSandbox('ready');
  assert.deepEqual(await run(9), [1, [], 'insufficient_capacity']);
});

test('a held request without capacity repeats after the end of a sleep, a few times', async () => {
  const { id } = await api.makeSandbox('sleeping');
  assert.deepEqual(await run(1), [2, [id], 'reserved']);
  assert.deepEqual(await run(9), [4, [id, id, id], 'insufficient_capacity']);
  assert.deepEqual((await run(9, { ...HELD, respondAsync: true }))[0], 1);
  assert.deepEqual((await run(9, { ...HELD, signal: AbortSignal.abort() }))[0], 1);
});

test('a held request repeats if a sleep ended before its end could be noticed', { timeout: 30_000 }, async () => {
  const { id } = await api.makeSandbox('sleeping');
  let lists = 0;
  const db = api.db.withPlugin({
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      lists += 1;
      if (lists === 1) await api.db.updateTable('sandbox').set({ status: 'stopped' }).where('id', '=', id).execute();
      return result;
    },
  });
  let closed = 0;
  const never = { next: () => new Promise<never>(() => {}), close: () => (closed += 1) };
  let attempts = 0;
  const outcome = await withCapacity({ db, changes: { watch: () => never } as never }, HELD, async () => {
    attempts += 1;
    if (attempts === 1) throw new CodedError('insufficient_capacity', 'full');
    return 'reserved';
  });
  const others = (await api.db.selectFrom('sandbox').select('id').where('status', '=', 'sleeping').execute()).length;
  assert.deepEqual([outcome, attempts, closed], ['reserved', 2, others + 1]);
});
