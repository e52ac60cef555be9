// Clones through the real services and durable work in a separate process, with a real PostgreSQL
// and a stand-in host.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { sql } from 'kysely';
import { SecretKey } from '../../../src/services/context/secret-key.ts';
import { sealText } from '../../../src/services/context/sealed.ts';
import type { SandboxRow } from '../../../src/store/database/schema.ts';
import { untilTrue } from '../../../../os/test/until.ts';
import type { Replica } from '../replica.ts';
import { openWorld, type World } from '../world.ts';

const HOST_TIMEOUT_MS = 1_500;
/** Distinctive text, as the tests search for it everywhere. */
const TOKEN = 'WatchedForEverywhere0123456789';

let world: World;
before(async () => {
  world = await openWorld();
});
after(() => world.close());
afterEach(async () => {
  await world.calm();
  await setProject({ repo_credentials_sealed: null, default_repository: null });
});

const startReplica = (options: Partial<typeof world.replica> = {}): Promise<Replica> =>
  world.start({ hostTimeoutMs: HOST_TIMEOUT_MS, ...options });

async function setProject(columns: {
  repo_credentials_sealed?: Buffer | null;
  default_repository?: string | null;
}): Promise<void> {
  await world.db.updateTable('project').set(columns).where('id', '=', world.replica.projectId).execute();
}

/** Seals like the replicas. */
function sealed(credentials: object): Buffer {
  const key = new SecretKey(Buffer.alloc(32)).keysFor('repo-credentials');
  return sealText(key, world.replica.projectId, JSON.stringify(credentials));
}

const activityOf = async (id: string): Promise<{ kind: string; details: Record<string, unknown> }[]> =>
  await world.db
    .selectFrom('activity')
    .select(['kind', 'details'])
    .where('sandbox_id', '=', id)
    .orderBy('seq')
    .execute();
const kindsOf = async (id: string): Promise<string[]> => (await activityOf(id)).map(({ kind }) => kind);
const outputOf = async (id: string): Promise<{ output: string; truncated: boolean } | undefined> =>
  await world.db
    .selectFrom('sandbox_clone_output')
    .select(['output', 'truncated'])
    .where('sandbox_id', '=', id)
    .executeTakeFirst();
const cloneOf = (row: SandboxRow): (string | null)[] => [row.status, row.clone_status, row.clone_reason_code];
const isOver = (row: SandboxRow): boolean => row.clone_status !== 'pending' && row.status === 'ready';
const asked = (): Promise<void> => untilTrue('the clone reached the host', () => world.host.clones.length > 0);
const WEB = { repository: 'acme/web' };

test('a sandbox with a repository returns running, is cloned once, and becomes ready', async () => {
  const replica = await startReplica();
  world.host.cloneMs = 60_000;
  const { id, status } = await replica.ask('create', { ...WEB, branch: 'dev' });
  assert.equal(status, 'running');
  await asked();
  world.host.finish('clone');
  const row = await world.until(id, isOver);
  assert.deepEqual(cloneOf(row), ['ready', 'cloned', null]);
  assert.deepEqual(world.host.clones, [
    {
      epoch: 1,
      url: 'https://git.example.test/acme/web.git',
      branch: 'dev',
      credentials: null,
      timeoutSeconds: 60,
      maxMib: 1_024,
    },
  ]);
  const activity = await activityOf(id);
  assert.deepEqual(
    activity.map(({ kind }) => kind),
    ['sandbox_created', 'sandbox_running', 'sandbox_clone_started', 'sandbox_clone_finished', 'sandbox_ready'],
  );
  for (const { kind, details } of activity.filter(({ kind }) => kind.startsWith('sandbox_clone')))
    assert.deepEqual(details, { repository: 'acme/web', branch: 'dev' }, kind);

  assert.equal(world.host.cloned.get(id), 1);
  const { rows } = await sql<{ n: string }>`select count(*) as n from usage_interval where sandbox_id = ${id}`.execute(
    world.db,
  );
  assert.equal(Number(rows[0]?.n), 1);
});

test('a sandbox without a repository is ready at once, and no host receives a clone call', async () => {
  const replica = await startReplica();
  const { id, status } = await replica.ask('create');
  assert.equal(status, 'ready');
  assert.deepEqual(await kindsOf(id), ['sandbox_created', 'sandbox_ready']);
  assert.deepEqual(world.host.clones, []);
});

for (const [title, stored, defaultRepository, repository, expected] of [
  ["the project's credentials", { username: 'ci', token: TOKEN }, null, 'acme/web', { username: 'ci', token: TOKEN }],
  [
    'a token alone with a user name that any host takes',
    { token: TOKEN },
    null,
    'acme/web',
    { username: 'x-access-token', token: TOKEN },
  ],
  ['none for a host that they are not for', { token: TOKEN }, null, 'https://other.example.test/a/b', null],
  [
    'none for the own host where the project is at another',
    { token: TOKEN },
    'https://other.example.test/x/y',
    'acme/web',
    null,
  ],
  [
    "those for the host of the project's default repository",
    { token: TOKEN },
    'https://other.example.test/x/y',
    'https://other.example.test/a/b',
    { username: 'x-access-token', token: TOKEN },
  ],
] as const) {
  test(`a clone is requested with ${title}`, async () => {
    await setProject({ repo_credentials_sealed: sealed(stored), default_repository: defaultRepository });
    const replica = await startReplica();
    const { id } = await replica.ask('create', { repository });
    await world.until(id, isOver);
    assert.deepEqual(world.host.clones[0]?.credentials, expected);
  });
}

test('clone credentials are in no database row, step or log, whatever the guest reports', async () => {
  await setProject({ repo_credentials_sealed: sealed({ username: 'watched-for-user', token: TOKEN }) });
  const replica = await startReplica({ logLevel: 'trace' });
  const pair = Buffer.from(`watched-for-user:${TOKEN}`).toString('base64');
  world.host.refuseClones.push({ code: 'guest_unreachable', message: `the guest answered 500: ${TOKEN}` });
  world.host.cloneResults.push({
    outcome: 'failed',
    code: 'failed',
    message: `\u001b[1mfatal: https://watched-for-user:${TOKEN}@git.test ${pair} ${encodeURIComponent(TOKEN)} over`,
  });
  const split = `${TOKEN.slice(0, 5)}\u001b[0m${TOKEN.slice(5)}`;
  world.host.cloneOutputs.push({
    text: `${TOKEN.slice(9)} cut\nremote: ${pair}\r\nremote: ${split}\nfatal: no\n`,
    truncated: true,
  });
  const { id } = await replica.ask('create', WEB);
  const row = await world.until(id, isOver);
  assert.equal(world.host.clones.length, 2);
  assert.equal(
    row.clone_reason_message,
    'git could not clone the repository: fatal: https://[redacted]@git.test [redacted] [redacted] over',
  );
  assert.deepEqual(await outputOf(id), {
    output: 'remote: [redacted]\nremote: [redacted]\nfatal: no\n',
    truncated: true,
  });
  const { rows } = await sql<{ name: string; schema: string }>`
    select table_name as name, table_schema as schema from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE'`.execute(world.db);
  assert.ok(rows.length > 20);
  for (const { schema, name } of rows) {
    const found = await sql<{ row: string }>`select t::text as row from ${sql.table(`${schema}.${name}`)} t`.execute(
      world.db,
    );
    for (const secret of [TOKEN, 'watched-for-user', pair])
      for (const { row: text } of found.rows) assert.ok(!text.includes(secret), `${schema}.${name} holds ${secret}`);
  }
  assert.match(replica.log, /clone of a repository finished/);
  for (const secret of [TOKEN, 'watched-for-user', pair])
    assert.ok(!replica.log.includes(secret), 'the log holds the secret');
});

test('a failed clone leaves the sandbox ready, with the reason in its row and the feed', async () => {
  const replica = await startReplica();
  world.host.cloneResults.push({
    outcome: 'failed',
    code: 'branch_not_found',
    message: 'fatal: Remote branch x not found',
  });
  const { id } = await replica.ask('create', { ...WEB, branch: 'x' });
  const row = await world.until(id, isOver);
  const message = 'the repository has no such branch: fatal: Remote branch x not found';
  assert.deepEqual([...cloneOf(row), row.clone_reason_message], ['ready', 'failed', 'branch_not_found', message]);
  assert.deepEqual([row.status_reason_code, row.epoch], [null, 1]);
  const [failed, ready] = (await activityOf(id)).slice(-2);
  assert.equal(failed?.kind, 'sandbox_clone_failed');
  assert.deepEqual(failed.details['reason'], { code: 'branch_not_found', message });
  assert.equal(ready?.kind, 'sandbox_ready');
  // The sandbox behaves like any other.
  assert.equal((await replica.ask('sleep', { sandboxId: id })).status, 'stopped');
  assert.equal((await replica.ask('wake', { sandboxId: id })).status, 'ready');
  assert.equal(world.host.clones.length, 1);
});

test("git's output of the last clone is kept until the destroy; a host may have none", async () => {
  const replica = await startReplica();
  world.host.cloneOutputs.push(
    { text: "Cloning into 'work'...\nwarning: You appear to have cloned an empty repository.\n", truncated: false },
    { text: 'x'.repeat(20_000), truncated: false },
    { text: ' \n', truncated: false },
  );
  const { id } = await replica.ask('create', WEB);
  await world.until(id, isOver);
  assert.match((await outputOf(id))?.output ?? '', /^Cloning into 'work'...\nwarning: .+\n$/);
  // More than a guest may send, a blank output, and a host of an earlier release.
  for (let times = 0; times < 3; times += 1) {
    const other = await replica.ask('create', WEB);
    assert.deepEqual(cloneOf(await world.until(other.id, isOver)), ['ready', 'cloned', null]);
    assert.equal(await outputOf(other.id), undefined);
  }
  await replica.ask('destroy', { sandboxId: id });
  assert.equal(await outputOf(id), undefined);
});

for (const [title, credentials, repository, code] of [
  ['credentials that do not open', Buffer.from('altered'), 'acme/web', 'credentials_unusable'],
  ['a repository on a host that is no longer taken', null, 'https://other.example.test/a', 'repository_not_allowed'],
] as const) {
  test(`${title} fail the clone before any host is called`, async () => {
    await setProject({ repo_credentials_sealed: credentials });
    const replica = await startReplica({ startAtOnce: false, queuePollMs: 600_000 });
    const { id } = await replica.ask('create', { repository, respondAsync: true });
    if (code === 'repository_not_allowed') {
      await world.db
        .updateTable('sandbox')
        .set({ repository: 'https://gone.example.test/a' })
        .where('id', '=', id)
        .execute();
    }

    await startReplica();
    assert.deepEqual(cloneOf(await world.until(id, isOver)), ['ready', 'failed', code]);
    assert.deepEqual(world.host.clones, []);
  });
}

test('a briefly absent host or a lost response is retried', async () => {
  const replica = await startReplica();
  world.host.refuseClones.push({ code: 'guest_unreachable', message: 'x' }, { code: 'internal', message: 'x' });
  world.host.loseAnswers.push('clone');
  const { id } = await replica.ask('create', WEB);
  assert.deepEqual(cloneOf(await world.until(id, isOver)), ['ready', 'cloned', null]);
  assert.deepEqual([world.host.clones.length, world.host.cloned.get(id)], [4, 1]);
});

test('a silent guest or a host that cannot clone fails the clone, not the sandbox', async () => {
  const replica = await startReplica();
  for (let times = 0; times < 100; times += 1)
    world.host.refuseClones.push({ code: 'guest_unreachable', message: 'x' });
  const silent = await replica.ask('create', WEB);
  assert.deepEqual(cloneOf(await world.until(silent.id, isOver)), ['ready', 'failed', 'sandbox_unreachable']);
  world.host.refuseClones.length = 0;
  world.host.refuseClones.push({ code: 'route_not_found', message: 'no route' });
  const old = await replica.ask('create', WEB);
  assert.deepEqual(cloneOf(await world.until(old.id, isOver)), ['ready', 'failed', 'host_unavailable']);
});

test('a clone that restarts repeatedly still ends at its deadline', async () => {
  const replica = await startReplica({ cloneTimeoutSeconds: 1, hostTimeoutMs: 60_000 });
  for (let times = 0; times < 1_000; times += 1)
    world.host.refuseClones.push({ code: 'guest_unreachable', message: 'x' });
  const { id } = await replica.ask('create', WEB);
  assert.deepEqual(cloneOf(await world.until(id, isOver)), ['ready', 'failed', 'timed_out']);
});

test('a destroy interrupts a clone, which reports nothing more', async () => {
  const replica = await startReplica();
  world.host.cloneMs = 60_000;
  const { id } = await replica.ask('create', WEB);
  await asked();
  assert.equal((await replica.ask('destroy', { sandboxId: id })).status, 'deleted');
  assert.equal(world.host.vm(id), undefined);
  await replica.stop();
  assert.deepEqual((await kindsOf(id)).slice(-3), [
    'sandbox_clone_started',
    'sandbox_destroy_requested',
    'sandbox_deleted',
  ]);
  assert.deepEqual(cloneOf(await world.until(id, () => true)), ['deleted', 'pending', null]);
});

test('a sleep interrupts a clone; the wake is running and clones again', async () => {
  const replica = await startReplica();
  world.host.cloneMs = 60_000;
  const { id } = await replica.ask('create', WEB);
  await asked();
  assert.equal((await replica.ask('sleep', { sandboxId: id })).status, 'stopped');
  assert.deepEqual(cloneOf(await world.until(id, () => true)), ['stopped', 'pending', null]);
  // Ignore the clone that the sleep overtook.
  world.host.clones.length = 0;
  assert.equal((await replica.ask('wake', { sandboxId: id })).status, 'running');
  await asked();
  world.host.finish('clone');
  const row = await world.until(id, isOver);
  assert.deepEqual(
    [...cloneOf(row), row.epoch, row.clone_epoch, row.last_wake_from],
    ['ready', 'cloned', null, 3, 3, 'snapshot'],
  );
  assert.equal(world.host.cloned.get(id), 1);
  assert.deepEqual((await kindsOf(id)).slice(-7), [
    'sandbox_sleep_requested',
    'sandbox_stopped',
    'sandbox_wake_requested',
    'sandbox_woken',
    'sandbox_clone_started',
    'sandbox_clone_finished',
    'sandbox_ready',
  ]);
});

test('a failed sleep leaves the sandbox running, and it clones again', async () => {
  const replica = await startReplica();
  world.host.cloneMs = 60_000;
  const { id } = await replica.ask('create', WEB);
  await asked();
  world.host.cloneMs = 0;
  world.host.refuseSleeps.push({ code: 'sleep_failed', message: 'no room' });
  await replica.ask('sleep', { sandboxId: id });
  const row = await world.until(id, isOver, 90_000);
  assert.deepEqual([...cloneOf(row), row.epoch, row.clone_epoch], ['ready', 'cloned', null, 2, 2]);
  assert.ok((await kindsOf(id)).includes('sandbox_sleep_failed'));
});

test('a VM death during a clone fails the sandbox; a wake from its disk clones again', async () => {
  const replica = await startReplica();
  world.host.cloneMs = 60_000;
  const { id } = await replica.ask('create', WEB);
  await asked();
  world.host.killVm(id, 'Kernel panic', { deathCode: 'guest_panic' });
  assert.deepEqual(cloneOf(await world.until(id, ({ status }) => status === 'failed')), ['failed', 'pending', null]);
  world.host.cloneMs = 0;
  await replica.ask('wake', { sandboxId: id });
  const row = await world.until(id, isOver);
  assert.deepEqual([...cloneOf(row), row.last_wake_from], ['ready', 'cloned', null, 'disk']);
});

test('a lost host that returns with the VM during a clone has it running and cloned', async () => {
  const replica = await startReplica({ hostSilenceMs: 300, hostTimeoutMs: 60_000 });
  world.host.cloneMs = 60_000;
  const { id } = await replica.ask('create', WEB);
  await asked();
  await world.host.stop();
  await world.until(id, ({ status }) => status === 'failed');
  world.host.cloneMs = 0;
  await world.host.start();
  const row = await world.until(id, isOver);
  assert.deepEqual([...cloneOf(row), row.epoch, row.clone_epoch], ['ready', 'cloned', null, 2, 2]);
  assert.ok((await kindsOf(id)).includes('sandbox_recovered'));
});

test('a resize during a clone disturbs neither', async () => {
  const replica = await startReplica();
  world.host.cloneMs = world.host.resizeMs = 60_000;
  const { id } = await replica.ask('create', WEB);
  await asked();
  await replica.ask('resize', { sandboxId: id, size: { vcpu: 4 }, respondAsync: true });
  await untilTrue('the resize reached the host', () => world.host.calls.some(({ verb }) => verb === 'resize'));
  world.host.finish('clone');
  const cloned = await world.until(id, isOver);
  assert.deepEqual(
    [...cloneOf(cloned), cloned.epoch, cloned.clone_epoch, cloned.resizing],
    ['ready', 'cloned', null, 2, 1, true],
  );
  world.host.finish('resize');
  const grown = await world.until(id, ({ resizing }) => !resizing);
  assert.deepEqual([grown.allocated_vcpu, grown.pending_vcpu], [4, null]);
  assert.equal(world.host.cloned.get(id), 1);
});

test('a clone with an epoch overtaken by a resize is requested again with the newer epoch', async () => {
  const replica = await startReplica();
  world.host.loseAnswers.push('clone');
  world.host.refuseClones.push({ code: 'stale_epoch', message: 'epoch 2 was seen' });
  const { id } = await replica.ask('create', WEB);
  assert.deepEqual(cloneOf(await world.until(id, isOver)), ['ready', 'cloned', null]);
});

test('a replica that stops during a clone leaves it to the next', async () => {
  const stopped = await startReplica();
  world.host.cloneMs = 60_000;
  const { id } = await stopped.ask('create', WEB);
  await asked();
  await stopped.stop();
  assert.deepEqual(cloneOf(await world.until(id, () => true)), ['running', 'pending', null]);
  world.host.cloneMs = 0;
  await startReplica();
  assert.deepEqual(cloneOf(await world.until(id, isOver)), ['ready', 'cloned', null]);
});

for (const [title, change] of [
  ['without a step on record', sql`delete from durable_step where kind = 'clone'`],
  ['whose step a dead process had claimed', sql`update durable_step set claimed_by = 'gone' where kind = 'clone'`],
  [
    'that was settled by a replica of before there were clones',
    sql`update sandbox set status = 'ready', clone_epoch = null where status = 'running'`,
  ],
] as const) {
  test(`a clone ${title} gets one`, async () => {
    const stopped = await startReplica();
    world.host.cloneMs = 60_000;
    const { id } = await stopped.ask('create', WEB);
    await asked();
    await stopped.stop();
    await change.execute(world.db);
    await sql`update sandbox set updated_at = now() - interval '1 minute' where id = ${id}`.execute(world.db);
    world.host.cloneMs = 0;
    await startReplica();
    assert.deepEqual(cloneOf(await world.until(id, isOver, 30_000)), ['ready', 'cloned', null]);
  });
}
