import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { DIRECT_GUESTS } from '../../src/guest/client.ts';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { pino } from 'pino';
import { PoolDirectory } from '../../src/pool/directory.ts';
import { destroyPoolVm, exercisePoolVm, createPoolVm, type PoolVmParts, type PoolVm } from '../../src/pool/pool-vm.ts';
import { ScriptedDriver, ScriptedHost } from '../vm/scripted-driver.ts';
import { SIZE } from './pool-fixture.ts';

const ID = 'pool_aaaaaaaaaaaaaaaaaaaa';
const NEVER = new AbortController().signal;

describe('a VM that waits in the pool', () => {
  let root: string;
  let parts: PoolVmParts & { driver: ScriptedDriver };
  let made: PoolVm | null;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'berth-pool-machine-'));
    const directory = new PoolDirectory(join(root, 'pool'));
    await directory.open();
    const driver = new ScriptedDriver(new ScriptedHost());
    parts = {
      driver,
      directory,
      guests: DIRECT_GUESTS,
      log: pino({ level: 'silent' }),
      size: SIZE,
      deadlineMs: 10_000,
    };
    made = null;
  });
  afterEach(async () => {
    if (made !== null) {
      made.watch.abort();
      made.guest.close();
      await destroyPoolVm(parts, ID, made.driverState);
    }
    await parts.driver.machine.stop();
    await rm(root, { recursive: true });
  });

  it('adds no listener to its process exit with an exercise', async (context) => {
    made = await createPoolVm(parts, ID, NEVER);
    const { mock } = context.mock.method(made.gone, 'then');
    await exercisePoolVm(parts, made, NEVER);
    await exercisePoolVm(parts, made, NEVER);
    assert.equal(mock.callCount(), 0);
  });

  it('is not awaited after its process exits during an exercise, nor in the next', async () => {
    made = await createPoolVm(parts, ID, NEVER);
    const { machine } = parts.driver;
    for (const { guest } of machine.of(ID)) {
      guest.handler = () =>
        machine.of(ID)[0]?.exited.resolve({ code: 'qemu_crash', reason: 'ended', lastAliveUnixMs: 0 });
    }

    await assert.rejects(exercisePoolVm(parts, made, NEVER), /the process of the VM exited/);
    await assert.rejects(exercisePoolVm(parts, made, NEVER), /the process of the VM exited/);
  });
});
