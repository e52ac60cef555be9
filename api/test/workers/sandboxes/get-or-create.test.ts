// Creates with `getOrCreate` by many callers through two replicas, and after a replica was killed.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import type { Replica, ReplicaValue } from '../replica.ts';
import { openWorld, type World } from '../world.ts';

const CALLERS = 40;

let world: World;
before(async () => {
  world = await openWorld();
});
after(() => world.close());
afterEach(() => world.calm());

const askBoth = async (both: [Replica, Replica], keyOf: (caller: number) => string): Promise<ReplicaValue[]> =>
  await Promise.all(
    Array.from({ length: CALLERS }, async (_, caller) => {
      const replica = caller % 2 === 0 ? both[0] : both[1];
      return await replica.ask('create', { key: keyOf(caller) });
    }),
  );

const startReplicas = (): Promise<[Replica, Replica]> => Promise.all([world.start(), world.start()]);

test('40 callers of one key through two replicas get one sandbox', async () => {
  const both = await startReplicas();
  world.host.createMs = 100;
  const answers = await askBoth(both, () => 'one user');
  assert.equal(new Set(answers.map((answer) => answer.id)).size, 1);
  const id = answers[0]?.id ?? '';
  assert.deepEqual([...new Set(answers.map((answer) => answer.status))], ['ready']);
  assert.equal(world.host.made.get(id), 1);

  await both[0].ask('sleep', { sandboxId: id });
  world.host.wakeMs = 100;
  const woken = await askBoth(both, () => 'one user');
  assert.deepEqual([...new Set(woken.map((answer) => `${answer.id} ${answer.status}`))], [`${id} ready`]);
  assert.equal(world.host.woken.get(id), 1);
});

test('40 callers of 40 keys through two replicas get 40 sandboxes', async () => {
  const both = await startReplicas();
  const answers = await askBoth(both, (caller) => `user ${caller}`);
  assert.equal(new Set(answers.map((answer) => answer.id)).size, CALLERS);
  assert.deepEqual([...new Set(answers.map((answer) => answer.status))], ['ready']);
});

test('the sandbox of a killed replica is found by the key through another', async () => {
  const [killed, other] = await startReplicas();
  world.host.createMs = 60_000;
  const { id } = await killed.ask('create', { key: 'killed', respondAsync: true });
  await killed.kill();
  const found = await other.ask('create', { key: 'killed', respondAsync: true });
  assert.equal(found.id, id);
  world.host.calm();
  assert.deepEqual(await other.ask('create', { key: 'killed' }).then(({ id: same, status }) => [same, status]), [
    id,
    'ready',
  ]);
  assert.equal(world.host.made.get(id), 1);
});
