// Starting the durable work, and what it forgets.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import pino from 'pino';
import { migrateDurable } from '../../src/workers/durable.ts';
import { untilTrue } from '../world/until-true.ts';
import { Replica } from './replica.ts';
import { openWorld, type World } from './world.ts';

let world: World;
before(async () => {
  world = await openWorld();
});
after(() => world.close());

test('replicas that start on an empty database at once all find its tables made', async () => {
  const url = await world.postgres.createDatabase();
  const log = pino({ level: 'silent' });
  await Promise.all([migrateDurable(url, log), migrateDurable(url, log), migrateDurable(url, log)]);
  await migrateDurable(url, log);
});

test('replicas that start at once both serve', async () => {
  const both = await Promise.all([Replica.start(world.replica), Replica.start(world.replica)]);
  for (const replica of both) assert.equal((await replica.ask('create')).status, 'ready');
  for (const replica of both) await replica.stop();
});

test('a step that ended a day ago is forgotten, a later one kept', async () => {
  const replica = await Replica.start(world.replica);
  const [old, recent] = [await replica.ask('create'), await replica.ask('create')];
  const recorded = async (): Promise<string[]> => {
    const { rows } = await sql<{ id: string }>`
      select split_part(workflow_uuid, ':', 2) as id from dbos.workflow_status where status = 'SUCCESS'`.execute(
      world.db,
    );
    return rows.map((row) => row.id).filter((id) => id === old.id || id === recent.id);
  };
  // The answer comes with the commit; the end of the step is recorded a moment later.
  await untilTrue('the steps end', async () => (await recorded()).length === 2);
  await replica.stop();
  await sql`
    update dbos.workflow_status set updated_at = (extract(epoch from now() - interval '25 hours') * 1000)::bigint
    where workflow_uuid = ${`provision:${old.id}:1`}`.execute(world.db);
  const next = await Replica.start(world.replica);
  try {
    await untilTrue('the old step is forgotten', async () => (await recorded()).length === 1);
    assert.deepEqual(await recorded(), [recent.id]);
    const { rows } =
      await sql`select from dbos.operation_outputs where workflow_uuid = ${`provision:${old.id}:1`}`.execute(world.db);
    assert.equal(rows.length, 0);
  } finally {
    await next.stop();
  }
});
