// The session: token in memory, refreshed before it expires or once after a 401.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Session } from '../src/session/session.ts';

const SECONDS = 3_600;

interface Exchange {
  status: number;
  token?: string;
  userId?: string | null;
}

/** A session on scripted exchanges; other requests succeed with the token `valid` only. */
function scripted(...exchanges: (Exchange | 'lost')[]) {
  const world = { nowMs: 0, valid: '', exchanged: 0, others: 0, seen: [] as string[] };
  const session = new Session(
    (input, init) => {
      if (input !== '/auth/session') {
        const authorization = new Headers(init?.headers).get('authorization') ?? '';
        world.seen.push(authorization);
        return Promise.resolve(new Response('{}', { status: authorization === `Bearer ${world.valid}` ? 200 : 401 }));
      }
      world.exchanged += 1;
      const next = exchanges.shift() ?? 'lost';
      if (next === 'lost') return Promise.reject(new TypeError('fetch failed'));
      const { status, token, userId = 'usr_1' } = next;
      return Promise.resolve(
        Response.json({ access_token: token, expires_in: SECONDS, user_id: userId ?? undefined }, { status }),
      );
    },
    (_userId, isOther) => void (world.others += isOther ? 1 : 0),
    () => world.nowMs,
  );
  return { session, world };
}

test('a token is exchanged once for concurrent requests, and kept until 80 % of its life', async () => {
  const { session, world } = scripted({ status: 200, token: 'one' }, { status: 200, token: 'two' });
  assert.deepEqual(await Promise.all([session.token(), session.token()]), ['one', 'one']);
  assert.equal(session.state, 'signed-in');
  world.nowMs = SECONDS * 800 - 1;
  assert.equal(await session.token(), 'one');
  assert.equal(world.exchanged, 1);
  // Still valid: the request does not wait for the new one.
  world.nowMs = SECONDS * 800;
  assert.equal(await session.token(), 'one');
  await session.refresh();
  assert.equal(await session.token(), 'two');
  assert.equal(world.exchanged, 2);
});

test('an expired token is replaced before the request', async () => {
  const { session, world } = scripted({ status: 200, token: 'one' }, { status: 200, token: 'two' });
  await session.refresh();
  world.nowMs = SECONDS * 1_000;
  assert.equal(await session.token(), 'two');
});

test('a 401 is repeated once with a new token', async () => {
  const { session, world } = scripted({ status: 200, token: 'one' }, { status: 200, token: 'two' });
  world.valid = 'two';
  const send = async () =>
    await session.fetch('/v1/me', { headers: { authorization: `Bearer ${await session.token()}` } });
  assert.equal((await send()).status, 200);
  assert.deepEqual(world.seen, ['Bearer one', 'Bearer two']);
  world.valid = 'none';
  assert.equal((await send()).status, 401);
  assert.equal(world.exchanged, 3);
});

test('a refused exchange ends the session, and listeners hear of it', async () => {
  const { session } = scripted({ status: 200, token: 'one' }, { status: 401 });
  const states: string[] = [];
  session.subscribe(() => states.push(session.state));
  await session.refresh();
  await session.refresh();
  assert.deepEqual(states, ['signed-in', 'signed-out']);
  assert.equal(session.wasSignedIn, true);
});

test('a lost exchange keeps a valid token; without one the service is unreachable', async () => {
  const { session } = scripted({ status: 200, token: 'one' }, 'lost', { status: 503 });
  await session.refresh();
  await session.refresh();
  await session.refresh();
  assert.deepEqual([session.state, await session.token()], ['signed-in', 'one']);
  const other = scripted('lost');
  assert.equal(await other.session.token(), '');
  assert.equal(other.session.state, 'unreachable');
});

test('a refused origin is told from a missing sign-in', async () => {
  const { session } = scripted({ status: 403 });
  await session.refresh();
  assert.equal(session.state, 'refused');
});

test('a sign-in of another person ends the session, and its token sends nothing', async () => {
  const { session, world } = scripted(
    { status: 200, token: 'one' },
    // An earlier version of the service.
    { status: 200, token: 'one', userId: null },
    { status: 401 },
    { status: 200, token: 'two', userId: 'usr_2' },
  );
  world.valid = 'two';
  for (let exchange = 0; exchange < 3; exchange += 1) await session.refresh();
  assert.equal(world.others, 0);
  await session.refresh();
  assert.deepEqual([session.state, world.others, await session.token()], ['signed-out', 1, '']);
});
