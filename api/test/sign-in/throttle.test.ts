// Limits of attempts by account and by address, across instances, and their responses.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import {
  accountKey,
  addressKey,
  domainKey,
  loginKey,
  userKey,
  type ThrottleKey,
} from '../../src/rules/access/throttle.ts';
import type { SignInError } from '../../src/services/people/sign-in-port.ts';
import { startApi, type TestApi } from '../world/api.ts';
import { makePerson, newCaller, PASSWORD, refusedWith, startInstance, stopRefilling, type Instance } from './client.ts';

let api: TestApi;
let second: Instance;
before(async () => {
  api = await startApi({ durable: false });
  second = await startInstance(api);
});
after(async () => {
  await second.close();
  await api.close();
});

const outcome = async (trying: Promise<unknown>): Promise<string> =>
  await trying.then(
    () => 'in',
    (error: SignInError) => error.refusal,
  );
const count = (outcomes: readonly string[], wanted: string): number => outcomes.filter((one) => one === wanted).length;

test('an account allows ten attempts in a quarter of an hour from any address, right ones too', async () => {
  const { email } = await makePerson(api.signIn);
  const attempt = async (index: number): Promise<string> => {
    const instance = index % 2 === 0 ? api : second;
    return await outcome(
      instance.signIn.withPassword(
        { email: index % 3 === 0 ? email.toUpperCase() : email, password: 'wrong' },
        newCaller(),
      ),
    );
  };
  const first = await attempt(0);
  await stopRefilling(api.db);
  const outcomes = [first, ...(await Promise.all(Array.from({ length: 13 }, (_, index) => attempt(index))))];
  assert.deepEqual([count(outcomes, 'wrong_credentials'), count(outcomes, 'too_many_attempts')], [10, 4]);
  await assert.rejects(second.signIn.withPassword({ email, password: PASSWORD }, newCaller()), (error: SignInError) => {
    assert.ok((error.retryAfterSeconds ?? 0) >= 1 && (error.retryAfterSeconds ?? 0) <= 90);
    return refusedWith('too_many_attempts')(error);
  });
  // A tenth of fifteen minutes refills one try.
  await sql`update throttle set refilled_at = clock_timestamp() - interval '90 seconds', tokens = 0`.execute(api.db);
  assert.equal(await outcome(api.signIn.withPassword({ email, password: PASSWORD }, newCaller())), 'in');
  await stopRefilling(api.db);
  assert.equal(await outcome(api.signIn.withPassword({ email, password: PASSWORD }, newCaller())), 'too_many_attempts');
});

test('an unknown address is refused as often and in the same way', async () => {
  const outcomes: string[] = [];
  for (let attempt = 0; attempt < 12; attempt += 1) {
    outcomes.push(
      await outcome(api.signIn.withPassword({ email: 'nobody@example.test', password: 'wrong' }, newCaller())),
    );
    await stopRefilling(api.db);
  }
  assert.deepEqual([count(outcomes, 'wrong_credentials'), count(outcomes, 'too_many_attempts')], [10, 2]);
});

test('characters that a stored address cannot contain do not bypass the limit', async () => {
  const { email } = await makePerson(api.signIn);
  const outcomes: string[] = [];
  for (let attempt = 0; attempt < 12; attempt += 1) {
    const written = email.replace('@', `${'\0'.repeat(attempt)}@`);
    outcomes.push(await outcome(api.signIn.withPassword({ email: written, password: 'wrong' }, newCaller())));
    await stopRefilling(api.db);
  }
  assert.deepEqual([count(outcomes, 'wrong_credentials'), count(outcomes, 'too_many_attempts')], [10, 2]);
});

test('an IP address has fifty attempts; further ones do not count against the accounts', async () => {
  const caller = { address: '2001:db8:1:2::1', userAgent: null };
  const neighbour = { address: '2001:db8:1:2:ffff::2', userAgent: null };
  const people = await Promise.all(Array.from({ length: 6 }, () => makePerson(api.signIn)));
  const outcomes: string[] = [];
  for (let attempt = 0; attempt < 60; attempt += 1) {
    const { email } = people[attempt % 6] ?? { email: '' };
    outcomes.push(
      await outcome(api.signIn.withPassword({ email, password: 'wrong' }, attempt % 2 === 0 ? caller : neighbour)),
    );
    await stopRefilling(api.db);
  }
  assert.deepEqual([count(outcomes, 'wrong_credentials'), count(outcomes, 'too_many_attempts')], [50, 10]);
  // Ten attempts, eight admitted: two tries are left for callers elsewhere.
  const elsewhere = [1, 2, 3].map(() =>
    api.signIn.withPassword({ email: people[5]?.email ?? '', password: PASSWORD }, newCaller()),
  );
  assert.deepEqual([count(await Promise.all(elsewhere.map(outcome)), 'in')], [2]);
});

test('mails, sign-ups, devices and refreshes are limited by their own keys', async () => {
  const cases = [
    ['reset-password', accountKey('a@example.test'), 3],
    ['reset-password', addressKey('192.0.2.1'), 20],
    ['verify-email', accountKey('a@example.test'), 3],
    ['verify-email', addressKey('192.0.2.1'), 20],
    ['confirm', loginKey('sgn_a'), 10],
    ['confirm', addressKey('192.0.2.1'), 50],
    ['sign-up', addressKey('192.0.2.1'), 10],
    ['sign-up', domainKey('a@example.test'), 200],
    ['device-code', userKey('usr_a'), 20],
    ['device-code', addressKey('192.0.2.1'), 20],
    ['device-request', addressKey('192.0.2.1'), 30],
    ['oidc-return', addressKey('192.0.2.1'), 200],
    ['preview-grant', userKey('usr_a'), 300],
    ['refresh', loginKey('sgn_a'), 300],
  ] as const;
  for (const [kind, key, tries] of cases) {
    await api.signIn.throttle(kind, [key]);
    await stopRefilling(api.db);
    const outcomes = await Promise.all(
      Array.from({ length: tries + 2 }, () => outcome(api.signIn.throttle(kind, [key]))),
    );
    assert.deepEqual([count(outcomes, 'in'), count(outcomes, 'too_many_attempts')], [tries - 1, 3], `${kind} ${key}`);
  }
});

test('a refused attempt names its limit', async () => {
  const cases = [
    ['confirm', loginKey('sgn_b'), 10, /^too many attempts in this sign-in: the limit is 10 per hour; try again in/],
    ['device-code', userKey('usr_b'), 20, /^too many attempts by this user: the limit is 20 in 15 minutes; try again/],
  ] as const;
  for (const [kind, key, tries, message] of cases) {
    for (let attempt = 0; attempt < tries; attempt += 1) await api.signIn.throttle(kind, [key]);
    await assert.rejects(api.signIn.throttle(kind, [key]), { message });
  }
});

test('refused sign-ups name the limit of the address or mail domain and its variable', async () => {
  const limited = await startApi({ durable: false, settings: { signUpsPerHour: { address: 2, domain: 3 } } });
  try {
    const refused = async (key: ThrottleKey, tries: number): Promise<string> => {
      for (let attempt = 0; attempt < tries; attempt += 1) await limited.signIn.throttle('sign-up', [key]);
      return await limited.signIn.throttle('sign-up', [key]).then(
        () => 'in',
        (error: SignInError) => error.message,
      );
    };
    assert.match(
      await refused(addressKey('192.0.2.1'), 2),
      /from this network address: the limit is 2 per hour \(BERTH_SIGN_UPS_PER_ADDRESS\); try again in/,
    );
    assert.match(
      await refused(domainKey('a@Example.test'), 3),
      /with this mail domain: the limit is 3 per hour \(BERTH_SIGN_UPS_PER_DOMAIN\); try again in/,
    );
    assert.equal(await refused(domainKey('a@other.test'), 0), 'in');
    assert.notEqual(await refused(domainKey('"a@x"@example.test'), 0), 'in');
  } finally {
    await limited.close();
  }
});

test('an attempt of a kind without a key is a programming error', async () => {
  await assert.rejects(
    api.signIn.throttle('sign-up', [accountKey('a@example.test')]),
    /sign-up are not counted by account/,
  );
});

test('the rows reveal no accounts or addresses, not even by hashing guesses', async () => {
  const { rows } = await sql<{ text: string }>`select t::text as text from throttle t`.execute(api.db);
  assert.ok(rows.length > 0);
  for (const guess of [
    'a@example.test',
    'account:a@example.test',
    'sign-in account:nobody@example.test',
    'sign-up address:192.0.2.1',
  ]) {
    const hash = createHash('sha256').update(guess).digest('hex');
    for (const { text } of rows) assert.ok(!text.includes(guess) && !text.includes(hash));
  }
});
