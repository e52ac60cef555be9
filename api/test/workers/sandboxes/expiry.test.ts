// Ephemeral sandboxes end at their expiry despite crashes and outages: real replica processes, a
// real PostgreSQL, a stand-in host.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { newId } from '../../../src/store/database/ids.ts';
import { insertSandbox } from '../../../src/store/sandboxes/sandboxes.ts';
import type { SandboxRow } from '../../../src/store/database/schema.ts';
import { sql } from 'kysely';
import pg from 'pg';
import type { Replica } from '../replica.ts';
import { openWorld, type World } from '../world.ts';

/** Promised maximum between expiry and end. */
const PROMISED_MS = 2_000;

let world: World;
before(async () => {
  world = await openWorld();
});
after(() => world.close());
afterEach(() => world.calm());

const startReplica = (): Promise<Replica> => world.start({ hostTimeoutMs: 60_000 });

/** Makes the sandbox ephemeral, expiring in `leftMs`. */
async function setExpiry(sandboxId: string, leftMs: number): Promise<void> {
  await sql`
    update sandbox set mode = 'ephemeral', ttl_seconds = 60, persistence_policy = 'always_on',
      expires_at = clock_timestamp() + make_interval(secs => ${leftMs / 1_000})
    where id = ${sandboxId}`.execute(world.db);
}

async function createEphemeral(replica: Replica, leftMs: number): Promise<string> {
  const { id } = await replica.ask('create');
  await setExpiry(id, leftMs);
  return id;
}

const untilDeleted = (id: string): Promise<SandboxRow> => world.until(id, (row) => row.status === 'deleted', 30_000);

/** Milliseconds from its expiry to the transaction that ended it. */
async function endedAfterMs(id: string): Promise<number> {
  const { rows } = await sql<{ ms: number }>`
    select (extract(epoch from activity.at - sandbox.expires_at) * 1000)::float8 as ms
    from activity join sandbox on sandbox.id = activity.sandbox_id
    where sandbox_id = ${id} and kind = 'sandbox_expired'`.execute(world.db);
  assert.equal(rows.length, 1, 'it was ended once');
  return rows[0]?.ms ?? Infinity;
}

/**
 * Requires at least one of three attempts to stay within the promised time: a busy host may delay
 * one attempt, a defect delays all. Other assertions hold for each attempt.
 */
async function requireInTime(attempt: () => Promise<number>): Promise<void> {
  const tookMs: number[] = [];
  while (tookMs.length < 3) {
    await world.calm();
    const ms = await attempt();
    assert.ok(ms >= 0, `${ms} ms: before its time`);
    if (ms < PROMISED_MS) return;
    tookMs.push(ms);
  }
  assert.fail(`late each time, by ${tookMs.join(', ')} ms`);
}

/** Asserts that the sandbox's only interval ends at its expiry, to the millisecond. */
async function requireMeteredUntilExpiry(id: string): Promise<void> {
  const { rows } = await sql<{ late_ms: number }>`
    select (extract(epoch from upper(during) - sandbox.expires_at) * 1000)::float8 as late_ms
    from usage_interval join sandbox on sandbox.id = usage_interval.sandbox_id where sandbox_id = ${id}`.execute(
    world.db,
  );
  assert.equal(rows.length, 1);
  assert.ok(Math.abs(rows[0]?.late_ms ?? Infinity) < 1, `${rows[0]?.late_ms} ms off`);
}

test('an ephemeral sandbox ends within 2 s of its expiry, its metered time at the expiry', async () => {
  await requireInTime(async () => {
    const id = await createEphemeral(await startReplica(), 700);
    await untilDeleted(id);
    assert.deepEqual(world.host.alive(id), []);
    await requireMeteredUntilExpiry(id);
    const events = await world.db
      .selectFrom('activity')
      .select(['kind', 'actor_kind'])
      .where('sandbox_id', '=', id)
      .orderBy('at')
      .execute();
    assert.deepEqual(
      events.map(({ kind, actor_kind }) => [kind, actor_kind]),
      [
        ['sandbox_created', 'api_key'],
        ['sandbox_ready', 'system'],
        ['sandbox_expired', 'system'],
        ['sandbox_deleted', 'system'],
      ],
    );
    return await endedAfterMs(id);
  });
});

test('a sandbox that expires while its VM is being created ends too and leaves no VM', async () => {
  await requireInTime(async () => {
    world.host.createMs = 60_000;
    const replica = await startReplica();
    const { id } = await replica.ask('create', { respondAsync: true });
    await setExpiry(id, 300);
    await untilDeleted(id);
    assert.deepEqual(world.host.alive(id), []);
    return await endedAfterMs(id);
  });
});

test('when the leader is killed before the expiry, another replica ends the sandbox in time', async () => {
  await requireInTime(async () => {
    const leader = await startReplica();
    await startReplica();
    const id = await createEphemeral(leader, 800);
    await leader.kill();
    await untilDeleted(id);
    await requireMeteredUntilExpiry(id);
    return await endedAfterMs(id);
  });
});

test('when the leading session does nothing, other replicas end sandboxes in time', async () => {
  const idle = new pg.Client({ connectionString: world.replica.databaseUrl });
  await idle.connect();
  try {
    const { rows } = await idle.query(`select pg_try_advisory_lock(hashtextextended('berth:task:expiry', 0)) as leads`);
    assert.deepEqual(rows, [{ leads: true }]);
    await requireInTime(async () => {
      const id = await createEphemeral(await startReplica(), 500);
      await untilDeleted(id);
      return await endedAfterMs(id);
    });
  } finally {
    await idle.end();
  }
});

test('a sandbox that expired while no replica ran is ended by the next, metered to the expiry', async () => {
  const replica = await startReplica();
  const { id } = await replica.ask('create');
  await replica.kill();
  await setExpiry(id, 300);
  await world.until(id, (row) => row.expires_at !== null && row.expires_at.getTime() < Date.now() - 500);
  assert.equal((await world.until(id, () => true)).status, 'ready');
  await startReplica();
  await untilDeleted(id);
  assert.deepEqual(world.host.alive(id), []);
  await requireMeteredUntilExpiry(id);
});

test('a sandbox that expires while PostgreSQL is down is ended when it is back', async () => {
  const id = await createEphemeral(await startReplica(), 300);
  const { expires_at: expiresAt } = await world.until(id, (row) => row.expires_at !== null);
  await world.postgres.kill();
  await delay(Math.max(0, (expiresAt?.getTime() ?? 0) - Date.now()));
  await world.postgres.start();
  await untilDeleted(id);
  await requireMeteredUntilExpiry(id);
});

test("a sandbox whose host is down expires in time, and its VM within 2 s of the host's return", async () => {
  await requireInTime(async () => {
    const { id } = await (await startReplica()).ask('create');
    await world.host.stop();
    await setExpiry(id, 300);
    // Long enough for the pauses between attempts to reach their maximum.
    await world.until(id, (row) => row.status === 'destroying' && Date.now() - row.status_changed_at.getTime() > 3_000);
    await requireMeteredUntilExpiry(id);
    assert.deepEqual(world.host.alive(id), [id]);
    await world.host.start();
    const backAt = Date.now();
    const { deleted_at: deletedAt } = await untilDeleted(id);
    assert.deepEqual(world.host.alive(id), []);
    // Measured from the return of the host, which the replica may notice first.
    return Math.max(await endedAfterMs(id), (deletedAt?.getTime() ?? Infinity) - backAt);
  });
});

test('more simultaneous expiries than one batch holds are all ended, once each', async () => {
  const { orgId, projectId, userId } = world.replica;
  const ids = Array.from({ length: 130 }, () => newId('sandbox'));
  for (const id of ids) {
    await insertSandbox(world.db, {
      id,
      org_id: orgId,
      project_id: projectId,
      created_by: userId,
      name: 'one of many',
      agent: 'agent_one',
      status: 'failed',
      status_reason_code: 'create_failed',
      status_reason_message: 'made so by a test',
      epoch: 1,
      profile: 'auto',
      persistence_policy: 'always_on',
      mode: 'ephemeral',
      ttl_seconds: 60,
      expires_at: new Date(),
      metadata: '{}',
      allocated_vcpu: 1,
      allocated_memory_gb: 1,
      allocated_disk_gb: 10,
    });
  }
  await Promise.all([startReplica(), startReplica()]);
  for (const id of ids) {
    assert.equal((await untilDeleted(id)).epoch, 2);
    await endedAfterMs(id);
  }
});
