// Following the activity feed: every entry once and in order, held responses, and their bounds.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { HOLDS } from '@berth/contract/route/limits.ts';
import { sql, type CompiledQuery } from 'kysely';
import { writeCursor } from '../../../src/rules/page.ts';
import { insertActivity, type NewActivity } from '../../../src/store/activity/activity.ts';
import { selectFollowing, selectHorizon } from '../../../src/store/activity/follow.ts';
import type { Database } from '../../../src/store/database/schema.ts';
import { startApi, type Answer, type TestApi, type TestOrg } from '../../world/api.ts';
import { openWatched } from '../../world/watched-database.ts';
import { untilTrue } from '../../../../os/test/until.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

const HELD = { prefer: 'wait=25' };
const isHeld = ({ headers }: Answer): boolean => headers.get('preference-applied') === 'wait=25';

function follow(org: TestOrg, query: string, headers: Record<string, string> = {}): Promise<Answer> {
  return api.call('GET', `/v1/orgs/${org.orgId}/activity/follow${query}`, { token: org.token, headers });
}

async function startOf(org: TestOrg): Promise<string> {
  const { status, body } = await follow(org, '');
  assert.deepEqual([status, body.activity, body.hasMore], [200, [], false]);
  return body.cursor;
}

async function add(org: TestOrg, note: string, changed: Partial<NewActivity> = {}, db: Database = api.db) {
  const actor = { kind: 'system', id: null, userId: null } as const;
  await insertActivity(db, { orgId: org.orgId, actor, kind: 'sandbox_running', details: { note }, ...changed });
}

const notes = ({ body }: Answer): string[] =>
  body.activity.map(({ details }: { details: { note: string } }) => details.note);

/** Reads until the feed has as many entries after the cursor. */
async function readAll(org: TestOrg, since: string, count: number, limit = 200): Promise<string[]> {
  const all: string[] = [];
  for (let cursor = since; all.length < count;) {
    const answer = await follow(org, `?since=${cursor}&limit=${limit}`, HELD);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    all.push(...notes(answer));
    ({ cursor } = answer.body);
  }
  return all;
}

test('entries are returned oldest first, in pages, each once', async () => {
  const org = await api.makeOrg();
  await add(org, 'before');
  const since = await startOf(org);
  for (const note of ['1', '2', '3', '4', '5']) await add(org, note);
  const first = await follow(org, `?since=${since}&limit=2`);
  assert.deepEqual([notes(first), first.body.hasMore], [['1', '2'], true]);
  const second = await follow(org, `?since=${first.body.cursor}&limit=2`);
  assert.deepEqual([notes(second), second.body.hasMore], [['3', '4'], true]);
  const third = await follow(org, `?since=${second.body.cursor}&limit=2`);
  assert.deepEqual([notes(third), third.body.hasMore], [['5'], false]);
  assert.deepEqual(notes(await follow(org, `?since=${third.body.cursor}`)), []);
  assert.deepEqual(notes(await follow(org, `?since=${since}`)), ['1', '2', '3', '4', '5']);
});

test('an entry whose transaction commits after later ones is not skipped', async () => {
  const org = await api.makeOrg();
  const since = await startOf(org);
  const [written, commit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow = api.db.transaction().execute(async (trx) => {
    await add(org, 'slow', {}, trx);
    written.resolve();
    await commit.promise;
  });
  await written.promise;
  await add(org, 'fast');
  const early = await follow(org, `?since=${since}`);
  assert.deepEqual(notes(early), []);
  commit.resolve();
  await slow;
  assert.deepEqual(await readAll(org, early.body.cursor, 2), ['slow', 'fast']);
});

test('a follower gets each entry of concurrent writers exactly once', async () => {
  const org = await api.makeOrg();
  const since = await startOf(org);
  const [writers, each] = [4, 25];
  const write = async (writer: number): Promise<void> => {
    for (let number = 0; number < each; number += 1) {
      await api.db.transaction().execute(async (trx) => {
        await add(org, `${writer}.${number}`, {}, trx);
        // Commits out of order.
        await delay((writer * 7 + number * 3) % 11);
      });
    }
  };
  const [found] = await Promise.all([
    readAll(org, since, writers * each, 7),
    ...Array.from({ length: writers }, (_, writer) => write(writer)),
  ]);
  const expected = Array.from({ length: writers * each }, (_, at) => `${Math.floor(at / each)}.${at % each}`);
  assert.deepEqual(found.toSorted(), expected.toSorted());
});

test('filters by kinds, project and sandbox select entries', async () => {
  const org = await api.makeOrg();
  const { id } = await api.makeSandbox('ready', { org_id: org.orgId, project_id: org.projectId });
  const since = await startOf(org);
  await add(org, 'failed', { kind: 'sandbox_failed', projectId: org.projectId, sandboxId: id });
  await add(org, 'ready', { kind: 'sandbox_ready', projectId: org.projectId });
  await add(org, 'org', { kind: 'org_updated' });
  const found = async (query: string): Promise<string[]> => notes(await follow(org, `?since=${since}&${query}`));
  assert.deepEqual(await found('kind=sandbox_failed'), ['failed']);
  assert.deepEqual(await found('kind=sandbox_failed&kind=org_updated'), ['failed', 'org']);
  assert.deepEqual(await found('exceptKind=sandbox_failed&exceptKind=org_updated'), ['ready']);
  assert.deepEqual(await found(`projectId=${org.projectId}`), ['failed', 'ready']);
  assert.deepEqual(await found(`sandboxId=${id}`), ['failed']);
  assert.deepEqual(await found('sandboxId=%00'), []);
});

test('a follower gets no entry of another org, and another org is refused', async () => {
  const [org, other] = [await api.makeOrg(), await api.makeOrg()];
  const since = await startOf(org);
  await add(other, 'secret', { projectId: other.projectId });
  assert.deepEqual(notes(await follow(org, `?since=${since}`)), []);
  assert.deepEqual(notes(await follow(org, `?since=${since}&projectId=${other.projectId}`)), []);
  const answer = await follow({ ...org, orgId: other.orgId }, `?since=${since}`);
  assert.deepEqual([answer.status, answer.body.activity], [403, undefined]);
});

test('a cursor of another list, of another database or changed is refused by name', async () => {
  const org = await api.makeOrg();
  const ahead = writeCursor('activityFollow', { atMicroseconds: 1, tie: '999999999999999999-0' });
  for (const [since, message] of [
    ['nonsense', /^query\.since must be the cursor of an earlier response$/],
    [writeCursor('activity', { atMicroseconds: 1, tie: '1' }), /^query\.since must be the cursor/],
    [ahead, /^query\.since is not of this database; start again without it$/],
  ] as const) {
    const { status, body } = await follow(org, `?since=${since}`);
    assert.deepEqual([status, body.error.code], [400, 'invalid_request']);
    assert.match(body.error.message, message);
  }
});

test('a held response is sent when an entry is committed; kinds without notices arrive too', async () => {
  const org = await api.makeOrg();
  let since = await startOf(org);
  for (const kind of ['sandbox_running', 'sandbox_exec'] as const) {
    const held = follow(org, `?since=${since}`, HELD);
    await untilTrue('the response is held', () => api.context.holds.taken === 1);
    await add(org, kind, { kind });
    const answer = await held;
    assert.deepEqual([notes(answer), isHeld(answer)], [[kind], true]);
    since = answer.body.cursor;
  }
  const short = await follow(org, `?since=${since}`, { prefer: 'wait=1' });
  assert.deepEqual([notes(short), short.headers.get('preference-applied')], [[], 'wait=1']);
});

test('a credential that is revoked during a hold gets no entry', async () => {
  const org = await api.makeOrg();
  const since = await startOf(org);
  const held = follow(org, `?since=${since}`, HELD);
  await untilTrue('the response is held', () => api.context.holds.taken === 1);
  await api.db.transaction().execute(async (trx) => {
    await trx.updateTable('api_key').set({ revoked_at: new Date() }).where('org_id', '=', org.orgId).execute();
    await add(org, 'secret', {}, trx);
  });
  const { status, body } = await held;
  assert.deepEqual([status, body.activity], [401, undefined]);
});

test('a credential has a bounded number of held responses; further ones are sent at once', async () => {
  const [org, other] = [await api.makeOrg(), await api.makeOrg()];
  const [since, others] = [await startOf(org), await startOf(other)];
  const held = Array.from({ length: HOLDS.perCredential }, () => follow(org, `?since=${since}`, HELD));
  await untilTrue('all are held', () => api.context.holds.taken === HOLDS.perCredential);
  assert.equal(isHeld(await follow(org, `?since=${since}`, HELD)), false);
  const elsewhere = follow(other, `?since=${others}`, HELD);
  await untilTrue('that of another org is held', () => api.context.holds.taken === HOLDS.perCredential + 1);
  await Promise.all([add(org, 'one'), add(other, 'two')]);
  for (const answer of await Promise.all(held)) assert.deepEqual([notes(answer), isHeld(answer)], [['one'], true]);
  assert.deepEqual(notes(await elsewhere), ['two']);
  assert.equal(api.context.holds.taken, 0);
});

test('following a long feed is one indexed query, which reads no more entries than it returns', async () => {
  const [org, other] = [await api.makeOrg(), await api.makeOrg()];
  const fill = async (count: number): Promise<unknown> =>
    await sql`
      insert into activity (id, org_id, actor_kind, kind, subject_kind, subject_id, details)
      select 'act_' || gen_random_uuid(), case number % 2 when 0 then ${org.orgId} else ${other.orgId} end, 'system',
        'sandbox_running', 'org', 'x', '{}'
      from generate_series(1, ${count}::integer) number`.execute(api.db);
  await fill(20_000);
  const from = await selectHorizon(api.db);
  await fill(20_000);
  await sql`analyze activity`.execute(api.db);
  const horizon = await selectHorizon(api.db);
  const { db, queries, explain } = openWatched(api.databaseUrl);
  try {
    for (const filter of [{}, { kinds: ['sandbox_running'] }, { exceptKinds: ['sandbox_exec'] }]) {
      queries.length = 0;
      const rows = await selectFollowing(db, { orgId: org.orgId, ...filter }, { from, horizon, limit: 11 });
      const selects = queries.filter(({ sql: text }) => text.startsWith('select'));
      assert.deepEqual([rows.length, selects.length], [11, 1]);
      await sql`set enable_sort = off`.execute(db);
      const plan = await explain(selects[0] as CompiledQuery, 'run');
      assert.match(plan, /"Index Name":"activity_\w+_org_id_xid_seq_idx"/);
      const read = [...plan.matchAll(/"Actual Rows":([\d.]+)/g)].map(([, count]) => Number(count));
      assert.ok(Math.max(...read) <= 11, plan);
    }
  } finally {
    await db.destroy();
  }
});

test('held responses are sent when the replica stops', async () => {
  const org = await api.makeOrg();
  const since = await startOf(org);
  const held = follow(org, `?since=${since}`, HELD);
  await untilTrue('the response is held', () => api.context.holds.taken === 1);
  api.context.holds.end();
  const answer = await held;
  assert.deepEqual([answer.status, notes(answer)], [200, []]);
  assert.equal(isHeld(await follow(org, `?since=${since}`, HELD)), false);
});
