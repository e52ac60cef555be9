// The queue of durable steps on a real Postgres, with scripted programs.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { sql, type KyselyPlugin } from 'kysely';
import pino from 'pino';
import { openDatabase } from '../../../src/store/database/database.ts';
import type { Database } from '../../../src/store/database/schema.ts';
import { StepRunner, type RunnerOptions, type StepPrograms } from '../../../src/workers/queue/runner.ts';
import { startPostgres, type TestPostgres } from '../../world/database.ts';
import { untilTrue } from '../../../../os/test/until.ts';

interface Input {
  org: string;
  name: string;
}
type Program = (input: Input) => Promise<void>;

const log = pino({ level: 'silent' });
let postgres: TestPostgres;
let db: Database;
const runners: StepRunner[] = [];
before(async () => {
  postgres = await startPostgres();
  const url = await postgres.createMigratedDatabase();
  ({ db } = openDatabase({ url, maxConnections: 5, statementTimeoutMs: 300, onIdleError: () => undefined }));
});
after(async () => {
  await db.destroy();
  await postgres.stop();
});
afterEach(async () => {
  await Promise.all(runners.splice(0).map((runner) => runner.stop()));
  await db.deleteFrom('durable_step').execute();
});

function start(program: Program, options: Partial<RunnerOptions> = {}): StepRunner {
  const programs: StepPrograms = {
    provision: program,
    sleep: program,
    wake: program,
    resize: program,
    destroy: program,
    clone: program,
    'invitation-mail': program,
  };
  const runner = new StepRunner({ db, log, executorId: 'one', programs, stopping: new AbortController(), ...options });
  runners.push(runner);
  return runner;
}

/** Adds `count` steps of an org, in order. */
async function enqueue(org: string, count: number, kind = 'provision', claimedBy: string | null = null): Promise<void> {
  await sql`
    insert into durable_step (id, kind, org_id, input, enqueued_at, claimed_by)
    select ${kind} || ':' || ${org} || ':' || n, ${kind}, ${org},
      jsonb_build_object('org', ${org}::text, 'name', ${org} || n),
      now() + n * interval '1 ms', ${claimedBy}
    from generate_series(1, ${count}::int) n`.execute(db);
}

const countSteps = async (): Promise<number> => (await db.selectFrom('durable_step').select('id').execute()).length;
const untilEmpty = (): Promise<void> => untilTrue('all steps are done', async () => (await countSteps()) === 0);

/** A program that waits until released, and its calls in order. */
function gate(): { program: Program; started: Input[]; open: () => void } {
  const started: Input[] = [];
  const opened = Promise.withResolvers<void>();
  return {
    started,
    open: opened.resolve,
    program: async (input) => {
      started.push(input);
      await opened.promise;
    },
  };
}

test('ten orgs with 100 queued steps each take turns, none above its concurrency limit', async () => {
  for (let org = 0; org < 10; org += 1) await enqueue(`org${org}`, 100);
  const running = new Map<string, number>();
  const started: string[] = [];
  let most = 0;
  const release: (() => void)[] = [];
  const runner = start(
    async ({ org }) => {
      started.push(org);
      running.set(org, (running.get(org) ?? 0) + 1);
      most = Math.max(most, running.get(org) ?? 0);
      await new Promise<void>((resolve) => release.push(resolve));
      running.set(org, (running.get(org) ?? 0) - 1);
    },
    { stepsPerOrg: 5 },
  );
  runner.wake();
  await untilTrue('every org has its share', () => started.length === 50);
  assert.equal(new Set(started.slice(0, 10)).size, 10);
  assert.deepEqual(new Set(running.values()), new Set([5]));
  while ((await countSteps()) > 0) {
    for (const next of release.splice(0)) next();
    await delay(5);
  }
  assert.deepEqual([started.length, most], [1_000, 5]);
});

test("another org's step starts while an org's concurrency limit is used up", async () => {
  const { program, started, open } = gate();
  const runner = start(program, { stepsPerOrg: 3 });
  await enqueue('busy', 20);
  runner.wake();
  await untilTrue('the limit is reached', () => started.length === 3);
  await enqueue('other', 1);
  await enqueue('busy', 1, 'destroy');
  runner.wake();
  await untilTrue('the others start', () => started.length === 5);
  assert.deepEqual(
    started
      .slice(3)
      .map(({ name }) => name)
      .toSorted(),
    ['busy1', 'other1'],
  );
  open();
  await untilEmpty();
  assert.equal(started.length, 22);
});

test('a step that finishes while a claim is in flight makes room for the next', async () => {
  const ends: (() => void)[] = [];
  const claimIsHeld = Promise.withResolvers<void>();
  const letClaimEnd = Promise.withResolvers<void>();
  // The result of the second claim, which takes the fourth step, arrives late.
  const holdSecondClaim: KyselyPlugin = {
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      if (result.rows.some((row) => row['id'] === 'provision:busy:4')) {
        claimIsHeld.resolve();
        await letClaimEnd.promise;
      }
      return result;
    },
  };
  const stopping = new AbortController();
  const program: Program = () =>
    new Promise((resolve, reject) => {
      ends.push(resolve);
      stopping.signal.addEventListener('abort', reject);
    });
  const runner = start(program, { stepsPerOrg: 3, stopping, db: db.withPlugin(holdSecondClaim) });
  await enqueue('busy', 6);
  runner.wake();
  await untilTrue('the limit is reached', () => ends.length === 3);
  ends[0]?.();
  await claimIsHeld.promise;
  ends[1]?.();
  ends[2]?.();
  await untilTrue('three steps are done', async () => (await countSteps()) === 3);
  await delay(0);
  letClaimEnd.resolve();
  await untilTrue('the next three start', () => ends.length === 6);
  for (const end of ends) end();
  await untilEmpty();
});

test('two processes that claim concurrently run each step once', async () => {
  const ran: string[] = [];
  const program: Program = async ({ name }) => void ran.push(name);
  const [one, other] = [start(program), start(program, { executorId: 'other' })];
  for (let round = 0; round < 20; round += 1) {
    await enqueue(`org${round}-`, 20);
    one.wake();
    other.wake();
  }
  await untilEmpty();
  assert.deepEqual([ran.length, new Set(ran).size], [400, 400]);
});

test('a step that always fails is retried with pauses and delays no other', async () => {
  let tries = 0;
  const ran: string[] = [];
  const runner = start(async ({ org, name }) => {
    if (org === 'broken') {
      tries += 1;
      throw new Error('broken');
    }
    ran.push(name);
  });
  await enqueue('broken', 1);
  await enqueue('sound', 3);
  runner.wake();
  await untilTrue('it is tried again', () => tries >= 3);
  assert.deepEqual(ran, ['sound1', 'sound2', 'sound3']);
  assert.equal(await countSteps(), 1);
  assert.ok(tries < 10, `tried ${tries} times at once`);
});

test('a step lost between claim and start runs with the next claim', async () => {
  const ran: string[] = [];
  const runner = start(async ({ name }) => void ran.push(name));
  await enqueue('lost', 1, 'provision', 'one');
  await enqueue('foreign', 1, 'provision', 'other');
  runner.wake();
  await untilTrue('the lost one runs', async () => (await countSteps()) === 1);
  assert.deepEqual(ran, ['lost1']);
});

test('a step that runs here is not restarted when its claim is taken away', async () => {
  const { program, started, open } = gate();
  const runner = start(program);
  await enqueue('org', 1);
  runner.wake();
  await untilTrue('it runs', () => started.length === 1);
  await db.updateTable('durable_step').set({ claimed_by: null }).execute();
  await enqueue('next', 1);
  runner.wake();
  await untilTrue('the next one runs', () => started.length === 2);
  assert.deepEqual(
    started.map(({ name }) => name),
    ['org1', 'next1'],
  );
  open();
  await untilEmpty();
});

test('a step of an unknown kind is left to a process that knows it', async () => {
  const ran: string[] = [];
  const runner = start(async ({ name }) => void ran.push(name));
  await enqueue('newer', 1, 'hibernate');
  await enqueue('known', 1);
  runner.wake();
  await untilTrue('the known one is done', async () => (await countSteps()) === 1);
  const row = await db.selectFrom('durable_step').select(['kind', 'claimed_by']).executeTakeFirstOrThrow();
  assert.deepEqual([ran, row], [['known1'], { kind: 'hibernate', claimed_by: null }]);
});

test('a claim that hits the statement timeout leaves its steps to the next claim', async () => {
  const ran: string[] = [];
  const runner = start(async ({ name }) => void ran.push(name));
  await enqueue('org', 2);
  await db.transaction().execute(async (trx) => {
    await sql`lock table durable_step in access exclusive mode`.execute(trx);
    runner.wake();
    // Past the timeout of the claim, within that of an idle transaction.
    await delay(200);
    await sql`select pg_sleep(0.2)`.execute(trx);
  });
  await delay(50);
  runner.wake();
  await untilEmpty();
  assert.deepEqual(ran, ['org1', 'org2']);
});

test('a stopping process finishes what it can and releases other steps at once', async () => {
  const stopping = new AbortController();
  const runner = start(
    async ({ name }) => {
      if (name === 'org1') return;
      await delay(600_000, undefined, { signal: stopping.signal });
    },
    { stopping },
  );
  await enqueue('org', 2);
  runner.wake();
  await untilTrue('both were claimed', async () => {
    const rows = await db.selectFrom('durable_step').select('claimed_by').execute();
    return rows.length === 1 && rows[0]?.claimed_by === 'one';
  });
  await runner.stop();
  const rows = await db.selectFrom('durable_step').select(['id', 'claimed_by']).execute();
  assert.deepEqual(rows, [{ id: 'provision:org:2', claimed_by: null }]);
  runner.wake();
  assert.equal(await countSteps(), 1);
});
