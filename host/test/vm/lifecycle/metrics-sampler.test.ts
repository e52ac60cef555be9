import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { DataKeys } from '../../../src/vm/directory/data-keys.ts';
import { VmDirectory } from '../../../src/vm/directory/record.ts';
import { MetricsSampler } from '../../../src/vm/lifecycle/metrics-sampler.ts';
import { MetricsHistory } from '../../../src/vm/owned/metrics-history.ts';
import { newRecord, OwnedVm } from '../../../src/vm/owned/owned-vm.ts';
import { OwnedVms } from '../../../src/vm/owned/owned-vms.ts';
import { pino } from 'pino';
import { LifecycleFixture, SMALL, vmIdOf } from './lifecycle-fixture.ts';

const A = vmIdOf('a');
const B = vmIdOf('b');
const START = Date.UTC(2026, 0, 1);

describe('the sampler of a host', () => {
  let host: LifecycleFixture;
  beforeEach(async () => {
    host = await LifecycleFixture.start();
  });
  afterEach(() => host.stop());

  const amounts = (id: string, unixMs: number): (number | null)[] =>
    host.lifecycle.sampler.historyOf(id, 600, unixMs).points.map(({ residentMib }) => residentMib);

  it('samples running VMs; a sleep is a gap, and its history stays readable', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    await host.lifecycle.sampler.sample(START);
    await host.lifecycle.sleep(A, { epoch: 2 });
    await host.lifecycle.sampler.sample(START + 10_000);
    assert.deepEqual(amounts(A, START + 60_000), [100, null]);
    assert.equal(host.lifecycle.get(A).status, 'asleep');
    await host.lifecycle.wake(A, { epoch: 3, spec: SMALL });
    await host.lifecycle.sampler.sample(START + 60_000);
    assert.deepEqual(amounts(A, START + 60_000), [100, null, 100]);
  });

  it('samples in every step until it is stopped, also after a failure', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    const stop = new AbortController();
    const third = Promise.withResolvers<void>();
    const figures = host.driver.figures.bind(host.driver);
    let calls = 0;
    host.driver.figures = async (folder, state) => {
      calls += 1;
      if (calls === 1) throw new Error('exited');
      if (calls === 3) third.resolve();
      return figures(folder, state);
    };
    const running = host.lifecycle.sampler.run(stop.signal, 20);
    await third.promise;
    stop.abort();
    await running;
    assert.deepEqual(new Set(amounts(A, Date.now())), new Set([100]));
    const before = calls;
    await host.lifecycle.sampler.run(AbortSignal.abort());
    assert.equal(calls, before);
  });

  it('starts empty after a restart, and forgets destroyed VMs', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    await host.lifecycle.sampler.sample(START);
    await host.restart();
    assert.deepEqual(amounts(A, START), []);
    await host.lifecycle.sampler.sample(START);
    assert.deepEqual(amounts(A, START), [100]);
    await host.lifecycle.destroy(A, 2);
    assert.throws(() => host.lifecycle.sampler.historyOf(A, 600), { code: 'vm_not_found' });
  });

  it('skips a VM whose figures cannot be read, and samples the others', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    await host.lifecycle.create(B, { epoch: 1, spec: SMALL });
    const figures = host.driver.figures.bind(host.driver);
    let calls = 0;
    host.driver.figures = (folder, state) => {
      calls += 1;
      return calls === 1 ? Promise.reject(new Error('exited')) : figures(folder, state);
    };
    await host.lifecycle.sampler.sample(START);
    assert.deepEqual([amounts(A, START), amounts(B, START)], [[], [100]]);
  });

  it('keeps at most the limit of histories: the longest asleep goes first, a running VM never', async () => {
    const vms = new OwnedVms({ driver: host.driver, fences: host.fences });
    const add = (letter: string): OwnedVm => {
      const vm = new OwnedVm({ ...newRecord(vmIdOf(letter), 1, SMALL), status: 'running', driverState: { pid: 1 } });
      vms.add(vm);
      return vm;
    };
    const run = (vm: OwnedVm): void => {
      const process = { pid: 1, startTicks: '1', bootId: 'b' };
      vm.watch = { process, stop: new AbortController(), gone: new Promise(() => undefined) };
    };
    host.driver.figures = () =>
      Promise.resolve({
        cpuMs: 1,
        residentMib: 1,
        unsharedMib: 1,
        diskUsedMib: 1,
        networkInBytes: 1,
        networkOutBytes: 1,
      });
    const directory = new VmDirectory(`${host.root}/others`, new DataKeys(`${host.root}/other-keys`));
    const sampler = new MetricsSampler({ driver: host.driver, directory, log: pino({ level: 'silent' }) }, vms, 2);
    const [older, newer, first, second, third] = ['c', 'd', 'e', 'f', 'g'].map(add) as [
      OwnedVm,
      OwnedVm,
      OwnedVm,
      OwnedVm,
      OwnedVm,
    ];
    for (const [vm, at] of [
      [older, 1],
      [newer, 2],
    ] as const) {
      vm.history = new MetricsHistory();
      vm.history.lastUnixMs = at;
    }
    const kept = (): boolean[] => [older, newer, first, second, third].map(({ history }) => history !== null);
    run(first);
    await sampler.sample(START);
    assert.deepEqual(kept(), [false, true, true, false, false]);
    run(second);
    run(third);
    await sampler.sample(START);
    assert.deepEqual(kept(), [false, false, true, true, false]);
  });
});
