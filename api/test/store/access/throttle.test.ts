// Token buckets in rows: correct arithmetic, by the database clock, under concurrency.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { sql } from 'kysely';
import { refilled } from '../../../src/rules/access/throttle.ts';
import { deleteIdleBuckets, takeAttempt, type ThrottleBucket } from '../../../src/store/access/throttle.ts';
import { startApi, type TestApi } from '../../world/api.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

const SLOW: ThrottleBucket = { tries: 10, seconds: 1_000_000 };
const newKey = (): Buffer => createHash('sha256').update(randomBytes(16)).digest();
const row = async (key: Buffer) =>
  await api.db.selectFrom('throttle').selectAll().where('key_sha256', '=', key).executeTakeFirstOrThrow();

test('concurrent callers get exactly as many attempts as the bucket has', async () => {
  for (const tries of [1, 10]) {
    const key = newKey();
    const answers = await Promise.all(Array.from({ length: 40 }, () => takeAttempt(api.db, key, { ...SLOW, tries })));
    assert.equal(answers.filter((empty) => empty === null).length, tries);
    const refused = answers.filter((empty) => empty !== null);
    assert.ok(
      refused.every(
        ({ tokens, elapsedSeconds }) => tokens >= 0 && tokens < 1 && elapsedSeconds >= 0 && elapsedSeconds < 60,
      ),
    );
  }
});

test('a bucket refills over time at the exact rate', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({ tries: fc.integer({ min: 1, max: 20 }), seconds: fc.integer({ min: 10_000, max: 1_000_000 }) }),
      fc.double({ min: 0, max: 20, noNaN: true }),
      fc.integer({ min: -1_000, max: 2_000_000 }),
      async (bucket, tokens, elapsed) => {
        const key = newKey();
        await sql`
          insert into throttle
          values (${key}, ${tokens}, clock_timestamp() - make_interval(secs => ${elapsed}))`.execute(api.db);
        const expected = refilled(tokens, elapsed, bucket);
        // Run time also refills the bucket: skip values this close to a whole try.
        fc.pre(Math.abs(expected - 1) > 0.1);
        const empty = await takeAttempt(api.db, key, bucket);
        assert.equal(empty === null, expected >= 1);
        const left = await row(key);
        if (empty === null)
          assert.ok(Math.abs(left.tokens - (expected - 1)) < 0.1, `${left.tokens} is not ${expected - 1}`);
        else assert.ok(Math.abs(refilled(empty.tokens, empty.elapsedSeconds, bucket) - expected) < 0.1);
      },
    ),
    { numRuns: 60 },
  );
});

test('a refusal takes nothing and leaves the time', async () => {
  const key = newKey();
  await takeAttempt(api.db, key, { tries: 1, seconds: 1_000_000 });
  const before = await row(key);
  assert.notEqual(await takeAttempt(api.db, key, { tries: 1, seconds: 1_000_000 }), null);
  assert.deepEqual(await row(key), before);
});

test('a later time written by another caller is kept', async () => {
  const key = newKey();
  await sql`insert into throttle values (${key}, 5, clock_timestamp() + interval '1 hour')`.execute(api.db);
  const before = await row(key);
  assert.equal(await takeAttempt(api.db, key, SLOW), null);
  assert.deepEqual(await row(key), { ...before, tokens: 4 });
});

test('unused buckets are removed, oldest first, up to the batch size', async () => {
  await api.db.deleteFrom('throttle').execute();
  const old = Array.from({ length: 5 }, newKey);
  for (const [index, key] of old.entries())
    await sql`insert into throttle values (${key}, 0, now() - make_interval(secs => ${3_700 + index}))`.execute(api.db);

  const young = newKey();
  await takeAttempt(api.db, young, SLOW);
  assert.equal(await deleteIdleBuckets(api.db, 3_600, 3), 3);
  const left = await api.db.selectFrom('throttle').select('key_sha256').execute();
  assert.deepEqual(
    new Set(left.map(({ key_sha256: key }) => key.toString('hex'))),
    new Set([...old.slice(0, 2), young].map((key) => key.toString('hex'))),
  );
  assert.equal(await deleteIdleBuckets(api.db, 3_600, 3), 2);
  assert.equal(await deleteIdleBuckets(api.db, 3_600, 3), 0);
});
