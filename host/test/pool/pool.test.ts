import { health } from '@berth/protocol/calls/identity.ts';
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { afterEach, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { WAITING_VM_MIB } from '../../src/pool/target.ts';
import type { TakenVm } from '../../src/pool/hand-over.ts';
import type { PoolParts } from '../../src/pool/pool.ts';
import type { ExistingVm, VmSize } from '../../src/vm/driver.ts';
import type { ScriptedGuest } from '../vm/scripted-guest.ts';
import { failing } from '../vm/scripted-driver.ts';
import { PoolFixture, SIZE } from './pool-fixture.ts';

describe('the warm pool', () => {
  let fixture: PoolFixture;
  afterEach(() => fixture.remove());

  async function started(parts: Partial<PoolParts> = {}): Promise<PoolFixture> {
    fixture = await PoolFixture.make(parts);
    fixture.pool.start();
    return fixture;
  }

  it('fills to its minimum with VMs that took an identity and ran commands, under a secret', async () => {
    const guests: ScriptedGuest[] = [];
    fixture = await PoolFixture.make();
    fixture.driver.onGuest = (guest) => guests.push(guest);
    fixture.pool.start();
    await fixture.ready(2);
    assert.deepEqual(fixture.pool.state(), { ready: 2, target: 2 });
    assert.deepEqual(await fixture.folders(), fixture.running());
    for (const { requests, identity } of guests) {
      const paths = requests.map(({ url }) => url);
      assert.deepEqual(paths.slice(0, 3), ['/identity', '/exec', '/exec']);
      assert.match(identity?.secret ?? '', /^[\w-]{43}$/);
    }
    assert.notEqual(guests[0]?.identity?.secret, guests[1]?.identity?.secret);
  });

  it('hands a VM out with its folder, state and open connection, and stops tracking it', async () => {
    await started();
    await fixture.ready(2);
    const saved: unknown[] = [];
    const taken = await fixture.take('a', async (machineId, state) => {
      saved.push(machineId, state['id']);
      assert.deepEqual(await readdir(fixture.vmFolder('a')), [], 'its folder moved before the VM was on record');
    });
    assert.ok(taken !== null);
    assert.deepEqual(saved, [taken.machineId, taken.machineId]);
    assert.deepEqual(await readdir(fixture.vmFolder('a')), ['disk']);
    assert.ok(!(await fixture.folders()).includes(taken.machineId));
    const { ok } = await taken.guest.call(health, {}, { signal: AbortSignal.timeout(5_000), deadlineMs: 5_000 });
    assert.equal(ok, true);
    taken.guest.close();
    await fixture.pool.close();
    assert.deepEqual(fixture.running(), [taken.machineId], 'what was handed out is none of its business any more');
  });

  it('hands each VM out once to concurrent callers, and none to the rest', async () => {
    await started({ limits: { min: 4, max: 4 } });
    await fixture.ready(4);
    const taken = await Promise.all(Array.from({ length: 12 }, (_, index) => fixture.take(`vm${index}`)));
    const given = taken.filter((machine): machine is TakenVm => machine !== null);
    assert.equal(given.length, 4);
    assert.equal(new Set(given.map(({ machineId }) => machineId)).size, 4);
    given.forEach(({ guest }) => guest.close());
  });

  it('has no VM for another size where VMs cannot grow', async () => {
    await started();
    await fixture.ready(2);
    Object.assign(fixture.driver, { capabilities: { ...fixture.driver.capabilities, hotplug: false } });
    for (const size of [
      { ...SIZE, vcpu: 2 },
      { ...SIZE, memoryMib: 2_048 },
      { ...SIZE, diskGib: 20 },
    ])
      assert.equal(await fixture.take('a', undefined, size), null);

    assert.equal(fixture.pool.state().ready, 2);
  });

  it('grows a VM to the requested size before handing it out, and never shrinks one', async () => {
    await started();
    await fixture.ready(2);
    const sizes: unknown[] = [];
    Object.assign(fixture.driver, {
      capabilities: { ...fixture.driver.capabilities, hotplug: true },
      resize: async (vm: ExistingVm, from: VmSize, to: VmSize): Promise<VmSize> => {
        sizes.push(vm.folder, from, to);
        return to;
      },
    });
    const large = { vcpu: 4, memoryMib: 3_072, diskGib: 20 };
    const taken = await fixture.take('a', undefined, large);
    taken?.guest.close();
    assert.deepEqual(sizes, [fixture.vmFolder('a'), SIZE, large]);
    assert.equal(await fixture.take('b', undefined, { ...SIZE, memoryMib: 512 }), null);
    const again = await fixture.take('c');
    again?.guest.close();
    assert.equal(sizes.length, 3, 'one of the size that is asked for has nothing to be changed');
  });

  it('leaves nothing of a VM that failed to grow', async () => {
    await started({ limits: { min: 1, max: 1 } });
    await fixture.ready(1);
    const [id = ''] = fixture.running();
    Object.assign(fixture.driver, {
      capabilities: { ...fixture.driver.capabilities, hotplug: true },
      resize: async (_vm: ExistingVm, from: VmSize): Promise<VmSize> => from,
    });
    await assert.rejects(fixture.take('a', undefined, { ...SIZE, vcpu: 2 }), /after the hot-plug/);
    assert.ok(!fixture.running().includes(id));
  });

  it('keeps as many VMs as recent demand', async () => {
    await started();
    await fixture.ready(2);
    const taken = await Promise.all(['a', 'b', 'c'].map((name) => fixture.take(name)));
    taken.forEach((machine) => machine?.guest.close());
    await fixture.ready(3);
    assert.deepEqual(fixture.pool.state(), { ready: 3, target: 3 });
  });

  it('makes nothing while a caller waits for a VM, and resumes afterwards', async () => {
    fixture = await PoolFixture.make();
    const over = [fixture.pool.underWay(), fixture.pool.underWay()];
    fixture.pool.start();
    over[0]?.();
    over[0]?.();
    await delay(50);
    assert.equal(fixture.driver.creates, 0);
    over[1]?.();
    await fixture.ready(2);
  });

  it('discards a VM whose process exited or that fails its exercise', async () => {
    await started({ pace: { atOnce: 2, quietMs: 0, exerciseAfterMs: 100 } });
    await fixture.ready(2);
    const [killed = ''] = fixture.running();
    await fixture.machine.kill(killed);
    await fixture.until(
      'the one killed is replaced',
      () => !fixture.running().includes(killed) && fixture.pool.state().ready === 2,
    );

    const [stubborn = ''] = fixture.running();
    for (const { guest } of fixture.machine.of(stubborn))
      guest.handler = (_request, response) => response.writeHead(500).end('{}');

    await fixture.until(
      'the stubborn one is replaced',
      () => !fixture.running().includes(stubborn) && fixture.pool.state().ready === 2,
    );
    assert.deepEqual(await fixture.folders(), fixture.running());
  });

  it('exercises waiting VMs', async () => {
    await started({ limits: { min: 1, max: 1 }, pace: { atOnce: 1, quietMs: 0, exerciseAfterMs: 20 } });
    await fixture.ready(1);
    const guest = fixture.machine.of(fixture.running()[0] ?? '')[0]?.guest;
    const before = guest?.requests.length ?? 0;
    await fixture.until('it is exercised twice', () => (guest?.requests.length ?? 0) >= before + 6);
  });

  it('gives VMs up as memory gets short, one for each missing one', async () => {
    await started({ limits: { min: 4, max: 4 } });
    await fixture.ready(4);
    fixture.memory = { unpromisedMib: 100_000, spareMib: -WAITING_VM_MIB };
    await fixture.until('one is given up', () => fixture.pool.state().ready === 3);
    fixture.memory = { unpromisedMib: 2 * WAITING_VM_MIB, spareMib: 100_000 };
    await fixture.until('what is promised to VMs is left to them', () => fixture.pool.state().ready === 2);
    fixture.memory = { unpromisedMib: 0, spareMib: 0 };
    await fixture.ready(0);
    await fixture.until(
      'nothing of them is left',
      async () => (await fixture.folders()).length === 0 && fixture.running().length === 0,
    );
    assert.deepEqual(fixture.pool.state(), { ready: 0, target: 0 });
  });

  it('counts its VMs as memory available to VMs', async () => {
    await started();
    await fixture.ready(2);
    const disk = { diskTotalGib: 10, diskFreeGib: 10, diskOthersGib: 0 };
    const figures = { cores: 2, memTotalMib: 4_096, memAvailableMib: 1_000, ...disk };
    assert.deepEqual(fixture.pool.withPoolMemory(figures), { ...figures, memAvailableMib: 1_000 + 2 * WAITING_VM_MIB });
  });

  it('leaves nothing of a VM that could not be made, and retries', async () => {
    fixture = await PoolFixture.make({ limits: { min: 1, max: 1 } });
    fixture.driver.onCreate = failing('no slot');
    fixture.pool.start();
    await fixture.until('it failed', async () => fixture.driver.destroys > 0 && (await fixture.folders()).length === 0);
    fixture.driver.onCreate = async () => {};
    await fixture.ready(1);
  });

  it('leaves nothing of a VM that could not be handed out', async () => {
    await started({ limits: { min: 1, max: 1 } });
    await fixture.ready(1);
    const [id = ''] = fixture.running();
    fixture.pool.underWay();
    await assert.rejects(
      fixture.take('a', async () => {
        throw new Error('the disk is full');
      }),
      /the disk is full/,
    );
    assert.ok(!fixture.running().includes(id));
    assert.deepEqual(await fixture.folders(), []);
  });

  it('ends all its VMs when it closes, unfinished ones included', async () => {
    fixture = await PoolFixture.make({ limits: { min: 4, max: 4 } });
    const held = Promise.withResolvers<void>();
    let creates = 0;
    fixture.driver.onCreate = async () => (++creates > 2 ? held.promise : undefined);
    fixture.pool.start();
    await fixture.until('two wait and two are being made', () => fixture.pool.state().ready === 2 && creates === 4);
    const closed = fixture.pool.close();
    held.resolve();
    await closed;
    assert.deepEqual([fixture.running(), await fixture.folders()], [[], []]);
    assert.equal(await fixture.take('a'), null);
  });

  it('is disabled by a maximum of 0', async () => {
    await started({ limits: { min: 0, max: 0 } });
    assert.equal(await fixture.take('a'), null);
    await delay(20);
    assert.equal(fixture.driver.creates, 0);
    assert.deepEqual(fixture.pool.state(), { ready: 0, target: 0 });
  });

  it('ends the pool of a killed daemon', async () => {
    await started();
    await fixture.ready(2);
    await fixture.pool.close();
    await fixture.restart();
    fixture.pool.start();
    await fixture.ready(2);
    const left = fixture.running();
    // As if killed: the earlier daemon's pool does nothing from now on.
    const killed = fixture.pool;
    killed.underWay();
    await fixture.restart();
    assert.deepEqual([fixture.running(), await fixture.folders()], [[], []]);
    fixture.pool.start();
    await fixture.ready(2);
    assert.ok(fixture.running().every((id) => !left.includes(id)));
  });
});
