// Silence of a host, as seen by one process poll by poll.
import assert from 'node:assert/strict';
import { after, before, test, type TestContext } from 'node:test';
import { sql } from 'kysely';
import { pino } from 'pino';
import { HostError } from '../../../src/hosts/error.ts';
import { HostHealth } from '../../../src/workers/hosts/health.ts';
import type { StepContext } from '../../../src/workers/steps/step-context.ts';
import { startApi, type TestApi } from '../../world/api.ts';

const SILENCE_MS = 60_000;

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api?.close());

/** A health check of a scripted host, with an awake sandbox whose row is an hour old. */
async function pollingWorld(t: TestContext) {
  let nowMs = 1_000_000;
  t.mock.method(performance, 'now', () => nowMs);
  const state = { answers: false, databaseIsAway: false };
  const { id, host_id: hostId } = await api.makeSandbox('ready');
  const { url } = await api.db
    .selectFrom('host')
    .select('url')
    .where('id', '=', hostId ?? '')
    .executeTakeFirstOrThrow();
  await sql`update host set last_seen_at = now() - interval '1 hour'`.execute(api.db);
  const info = (): Promise<object> =>
    state.answers ? Promise.resolve({ hostId }) : Promise.reject(new HostError('host_timeout', 'no answer'));
  const db = new Proxy(api.db, {
    get: (real, name) => {
      if (state.databaseIsAway && name === 'selectFrom') throw new Error('the database is away');
      const value: unknown = Reflect.get(real, name, real);
      return typeof value === 'function' ? value.bind(real) : value;
    },
  });
  const health = new HostHealth(
    {
      db,
      hosts: { at: () => ({ url, info, listVms: () => Promise.reject(new HostError('host_timeout', 'no list')) }) },
      log: pino({ level: 'silent' }),
      lifecycle: { enqueue: () => assert.fail('nothing is cloned here'), started: () => undefined },
      hostTimeoutMs: 0,
      hostSilenceMs: SILENCE_MS,
      stopping: new AbortController().signal,
    } as unknown as StepContext,
    url,
  );
  return {
    state,
    health,
    pass: (ms: number): void => void (nowMs += ms),
    status: async () =>
      (await api.db.selectFrom('sandbox').select('status').where('id', '=', id).executeTakeFirstOrThrow()).status,
  };
}

test('a silent host loses its awake sandboxes', async (t) => {
  const { health, pass, status } = await pollingWorld(t);
  await health.tick();
  pass(SILENCE_MS);
  await health.tick();
  assert.equal(await status(), 'failed');
});

test('a host that responded is not silent, even if the database was down then', async (t) => {
  const { health, state, pass, status } = await pollingWorld(t);
  await health.tick();
  pass(SILENCE_MS / 2);
  Object.assign(state, { answers: true, databaseIsAway: true });
  await assert.rejects(health.tick(), /the database is away/);
  pass(SILENCE_MS / 2);
  Object.assign(state, { answers: false, databaseIsAway: false });
  await health.tick();
  assert.equal(await status(), 'ready');
});

test('a host polled by another replica is not silent for that time', async (t) => {
  const { health, pass, status } = await pollingWorld(t);
  await health.tick();
  health.rest();
  pass(SILENCE_MS);
  await health.tick();
  assert.equal(await status(), 'ready');
});
