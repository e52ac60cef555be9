// The upgrade from the version whose durable steps were workflows of the library DBOS: the first
// replica of this version completes the waiting and running ones.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql, type Kysely } from 'kysely';
import * as durableStep from '../../migrations/0001-0020/0016_durable_step.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { Replica } from './replica.ts';
import { openWorld, type World } from './world.ts';

const NEVER_MS = 600_000;
const CREATED_AT_MS = Date.UTC(2026, 0, 1);

let world: World;
before(async () => {
  world = await openWorld();
});
after(() => world.close());

/** The table of DBOS 5.3, with those of its columns that Berth's rows had values in. */
async function makeOldTable(): Promise<void> {
  await sql`create schema dbos`.execute(world.db);
  await sql`
    create table dbos.workflow_status (
      workflow_uuid text primary key,
      status text,
      name text,
      executor_id text,
      created_at bigint not null,
      updated_at bigint not null,
      application_version text,
      application_name text,
      recovery_attempts bigint default 0,
      queue_name text,
      serialization text
    )`.execute(world.db);
}

async function addOldRow(id: string, status: string, executorId = ''): Promise<void> {
  const kind = id.slice(0, id.indexOf(':'));
  const queue = { clone: 'clone', 'invitation-mail': 'mail' }[kind] ?? 'lifecycle';
  await sql`
    insert into dbos.workflow_status
    values (${id}, ${status}, ${kind}, ${executorId}, ${CREATED_AT_MS}, ${CREATED_AT_MS},
      ${status === 'ENQUEUED' ? null : '1'}, 'berth', ${status === 'ENQUEUED' ? 0 : 1},
      ${queue}, 'js_superjson')`.execute(world.db);
}

test('steps that the DBOS version left waiting or running are completed once after the upgrade', async () => {
  const maker = await Replica.start(world.replica);
  const [sleeps, wakes, grows, goes, clones] = await Promise.all(
    Array.from({ length: 5 }, async (_, index) => {
      const { id } = await maker.ask('create', index === 4 ? { repository: 'acme/web' } : {});
      return id;
    }),
  );
  assert.ok(sleeps && wakes && grows && goes && clones);
  await world.until(clones, (row) => row.clone_status === 'cloned');
  await maker.ask('sleep', { sandboxId: wakes });
  await world.atRest();
  await maker.stop();

  const silent = await Replica.start({ ...world.replica, startAtOnce: false, queuePollMs: NEVER_MS });
  const { id: made } = await silent.ask('create', { respondAsync: true });
  await silent.ask('sleep', { sandboxId: sleeps, respondAsync: true });
  await silent.ask('wake', { sandboxId: wakes, respondAsync: true });
  await silent.ask('resize', { sandboxId: grows, size: { vcpu: 4 }, respondAsync: true });
  await silent.ask('destroy', { sandboxId: goes, respondAsync: true });
  const { id: invitation } = await silent.ask('invite', { email: 'new@example.test' });
  await silent.kill();
  await sql`
    update sandbox set status = 'running', clone_status = 'pending', clone_epoch = 1
    where id = ${clones}`.execute(world.db);

  // Back to how the earlier version leaves the database when it is killed.
  await sql`drop table durable_step`.execute(world.db);
  await makeOldTable();
  const pending: [id: string, status: string, executorId?: string][] = [
    [`provision:${made}:1`, 'ENQUEUED'],
    [`sleep:${sleeps}:2`, 'PENDING', '45e3ac8a-a172-431e-b19f-6b5a2f5fd24a'],
    [`wake:${wakes}:3`, 'ENQUEUED'],
    [`resize:${grows}:2`, 'DELAYED'],
    [`destroy:${goes}:2`, 'PENDING', '24bafe2c-c698-4094-b2c1-5963a2845825'],
    [`clone:${clones}:1`, 'PENDING', '45e3ac8a-a172-431e-b19f-6b5a2f5fd24a'],
    [`invitation-mail:${invitation}:first`, 'ENQUEUED'],
  ];
  for (const row of pending) await addOldRow(...row);
  await addOldRow(`provision:${sleeps}:1`, 'SUCCESS', '45e3ac8a-a172-431e-b19f-6b5a2f5fd24a');
  await addOldRow(`provision:${wakes}:1`, 'ERROR', '45e3ac8a-a172-431e-b19f-6b5a2f5fd24a');

  // The migration by itself: later ones do not touch the steps.
  await world.db.transaction().execute((trx) => durableStep.up(trx as unknown as Kysely<unknown>));
  const rows = await world.db.selectFrom('durable_step').selectAll().orderBy('id').execute();
  assert.deepEqual(
    rows.map(({ id }) => id),
    pending.map(([id]) => id.replace(/:first$/, '')).toSorted(),
  );
  assert.deepEqual(new Set(rows.map((row) => row.enqueued_at.getTime())), new Set([CREATED_AT_MS]));
  assert.deepEqual(new Set(rows.map((row) => row.org_id)), new Set([world.replica.orgId]));
  const inputOf = (kind: string): unknown => rows.find((row) => row.kind === kind)?.input;
  assert.deepEqual(inputOf('wake'), { sandboxId: wakes, epoch: 3 });
  assert.deepEqual(inputOf('invitation-mail'), { invitationId: invitation, askedAtMs: CREATED_AT_MS });

  world.host.calls.length = 0;
  const next = await Replica.start(world.replica);
  try {
    await world.until(made, (row) => row.status === 'ready');
    await world.until(sleeps, (row) => row.status === 'stopped');
    await world.until(wakes, (row) => row.status === 'ready');
    await world.until(grows, (row) => row.allocated_vcpu === 4 && !row.resizing);
    await world.until(goes, (row) => row.status === 'deleted');
    await world.until(clones, (row) => row.status === 'ready' && row.clone_status === 'cloned');
    await untilTrue('the invitation is mailed', async () => {
      const row = await world.db.selectFrom('invitation').select('sent_at').executeTakeFirstOrThrow();
      return row.sent_at !== null;
    });
    await world.atRest();
    assert.deepEqual(world.host.calls.map(({ verb, id }) => `${verb} ${id}`).toSorted(), [
      `DELETE ${goes}`,
      `PUT ${made}`,
      `clone ${clones}`,
      `resize ${grows}`,
      `sleep ${sleeps}`,
      `wake ${wakes}`,
    ]);
  } finally {
    await next.stop();
  }
});
