// Places shared among holders: the order of their work, and a flood of one credential against the
// request of another.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FairQueue } from '../../src/call/fair-queue.ts';
import { startApi } from '../world/api.ts';

/** Runs the holders' work, each unit over several turns of the event loop. */
async function order(places: number, holders: string): Promise<{ started: string; most: number }> {
  const queue = new FairQueue(places);
  let started = '';
  let running = 0;
  let most = 0;
  await Promise.all(
    Array.from(holders, (holder) =>
      queue.run(holder, async () => {
        started += holder;
        most = Math.max(most, ++running);
        await new Promise(setImmediate);
        running -= 1;
      }),
    ),
  );
  return { started, most };
}

test('holders take turns, and places are limited', async () => {
  assert.deepEqual(await order(2, 'aaaaaabbc'), { started: 'aaabcabaa', most: 2 });
  assert.deepEqual(await order(1, 'aaaab'), { started: 'aabaa', most: 1 });
  assert.deepEqual(await order(9, 'aaab'), { started: 'aaab', most: 4 });
});

test('failed work frees its place', async () => {
  const queue = new FairQueue(1);
  const failed = queue.run('a', () => Promise.reject(new Error('refused')));
  const next = queue.run('a', () => Promise.resolve('ran'));
  await assert.rejects(failed, /refused/);
  assert.equal(await next, 'ran');
  assert.equal(await queue.run('a', () => Promise.resolve('again')), 'again');
});

test('a request passes hundreds that another key sent before', async (t) => {
  const api = await startApi({ durable: false });
  t.after(() => api.close());
  const other = await api.makeOrg();
  const get = async (token: string): Promise<number> => {
    const { statusCode } = await api.app.inject({
      method: 'GET',
      url: '/v1/me',
      headers: { authorization: `Bearer ${token}` },
    });
    return statusCode;
  };
  assert.deepEqual([await get(api.token), await get(other.token)], [200, 200]);

  let finished = 0;
  const flood = Array.from({ length: 600 }, async () => {
    assert.equal(await get(api.token), 200);
    finished += 1;
  });
  assert.equal(await get(other.token), 200);
  // A loaded machine reads the request late; without turns it would be the last.
  assert.ok(finished < 400, `${finished} of 600 were first`);
  await Promise.all(flood);
});
