import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { pino } from 'pino';
import { PoolDirectory } from '../../src/pool/pool-directory.ts';
import { endMachine, exerciseMachine, makeMachine, type MachineParts, type PoolMachine } from '../../src/pool/pool-machine.ts';
import type { VmEnd } from '../../src/vm/driver.ts';
import { ScriptedDriver, ScriptedMachine } from '../vm/scripted-driver.ts';
import { SIZE } from './pool-fixture.ts';

const ID = 'pool_aaaaaaaaaaaaaaaaaaaa';
const NEVER = new AbortController().signal;

describe('a machine that waits in the pool', () => {
  let root: string;
  let parts: MachineParts & { driver: ScriptedDriver };
  let made: PoolMachine | null;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'berth-pool-machine-'));
    const directory = new PoolDirectory(join(root, 'pool'));
    await directory.open();
    const driver = new ScriptedDriver(new ScriptedMachine());
    parts = { driver, directory, log: pino({ level: 'silent' }), size: SIZE, deadlineMs: 10_000 };
    made = null;
  });
  afterEach(async () => {
    if (made !== null) {
      made.watch.abort();
      made.guest.close();
      await endMachine(parts, ID, made.driverState);
    }
    await parts.driver.machine.stop();
    await rm(root, { recursive: true });
  });

  it('hangs nothing on the end of its process with each exercise: that may be days away', async () => {
    let hung = 0;
    const exited = parts.driver.exited.bind(parts.driver);
    parts.driver.exited = (process, signal): Promise<VmEnd> => {
      const gone = exited(process, signal);
      const hang = gone.then.bind(gone);
      return Object.assign(gone, {
        then: (...listeners: Parameters<typeof hang>): ReturnType<typeof hang> => {
          hung += 1;
          return hang(...listeners);
        },
      });
    };
    made = await makeMachine(parts, ID, NEVER);
    assert.equal(hung, 1);
    for (let round = 0; round < 3; round += 1) {
      await exerciseMachine(parts, made, NEVER);
    }
    assert.equal(hung, 1);
  });

  it('is waited for no longer when its process ends in the middle of an exercise, nor in the next', async () => {
    made = await makeMachine(parts, ID, NEVER);
    const { machine } = parts.driver;
    for (const { guest } of machine.of(ID)) {
      guest.handler = () => void machine.of(ID)[0]?.exited.resolve({ code: 'qemu_crash', reason: 'ended', lastAliveUnixMs: 0 });
    }
    await assert.rejects(exerciseMachine(parts, made, NEVER), /the process of the machine ended/);
    await assert.rejects(exerciseMachine(parts, made, NEVER), /the process of the machine ended/);
  });
});
