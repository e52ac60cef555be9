// Concurrent creation and use of account links: one works, and a new password revokes the others.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ONE_TIME_LINK_MINUTES } from '@berth/contract/route/limits.ts';
import { sql } from 'kysely';
import { findLinkedAccount, resetPassword, welcomeOwner } from '../../../src/services/people/accounts.ts';
import { makeOneTimeLink } from '../../../src/services/access/one-time-links.ts';
import { startApi, type TestApi } from '../../world/api.ts';
import { refusedWith } from '../../sign-in/client.ts';
import { untilTrue } from '../../../../os/test/until.ts';

const PASSWORD = 'correct horse battery staple';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

/** Makes two links for a purpose, the second before the first commits; returns their tokens. */
async function twoLinks(purpose: 'welcome' | 'reset_password', userId: string): Promise<[string, string]> {
  const make = { purpose, userId, minutes: ONE_TIME_LINK_MINUTES[purpose] };
  let second: Promise<string> = Promise.resolve('');
  const first = await api.db.transaction().execute(async (trx) => {
    const token = await makeOneTimeLink(trx, make);
    second = api.db.transaction().execute((other) => makeOneTimeLink(other, make));
    await untilTrue('the second waits for the first', async () => {
      const waiting = sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      return (await waiting.execute(api.db)).rows.length > 0;
    });
    return token;
  });
  return [first, await second];
}

for (const purpose of ['welcome', 'reset_password'] as const) {
  test(`of two links made concurrently only the later works: ${purpose}`, async () => {
    const { userId } = await api.makeSession({ role: null });
    const [first, second] = await twoLinks(purpose, userId);
    await assert.rejects(findLinkedAccount(api.context, purpose, first), refusedWith('link_invalid'));
    assert.equal((await findLinkedAccount(api.context, purpose, second)).id, userId);
  });
}

test('concurrent links of several purposes do not deadlock, and a password revokes the rest', async () => {
  for (let round = 0; round < 10; round += 1) {
    const { userId } = await api.makeSession({ role: null });
    const [welcome, reset] = await Promise.all(
      (['welcome', 'reset_password'] as const).map((purpose) =>
        api.db.transaction().execute((trx) => makeOneTimeLink(trx, { purpose, userId, minutes: 1 })),
      ),
    );
    const email = `${userId}@elsewhere.example.test`;
    const used = await Promise.allSettled([
      welcomeOwner(api.context, api.signIn, { token: welcome ?? '', email, name: 'Owner', password: PASSWORD }),
      resetPassword(api.context, api.signIn, { token: reset ?? '', password: PASSWORD }),
    ]);
    const refused = used.filter((one) => one.status === 'rejected');
    assert.equal(refused.length, 1);
    assert.ok(refusedWith('link_invalid')(refused[0]?.reason));
  }
});
