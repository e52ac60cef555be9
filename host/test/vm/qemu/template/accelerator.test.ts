import assert from 'node:assert/strict';
import { access, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { readProbeFor, writeProbe } from '../../../../src/vm/qemu/template/accelerator.ts';

const VERSION = { text: '10.0.2 (Debian)', runWithUser: true };
const HOST = { cpuVendor: 'AuthenticAMD', cpuModel: 'AMD EPYC', kernel: '6.1.0', isVm: false };
const BOOTED = { cpuModel: 'EPYC-v2', cpuModels: ['EPYC-v2', 'EPYC-v1'] };

const hasKvm = await access('/dev/kvm').then(
  () => true,
  () => false,
);

async function cacheFolder(context: TestContext): Promise<string> {
  const cache = await mkdtemp(join(tmpdir(), 'berth-probe-'));
  context.after(() => rm(cache, { recursive: true }));
  return cache;
}

test('before a probe a host with /dev/kvm is undecided; without it there is nothing to probe', async (context) => {
  const probe = await readProbeFor(await cacheFolder(context), VERSION, HOST);
  assert.equal(probe?.accelerator, hasKvm ? undefined : 'tcg');
});

test('a failed boot under KVM is cached as TCG with its reason', async (context) => {
  const cache = await cacheFolder(context);
  const written = await writeProbe(cache, VERSION, HOST, {
    failure: 'a boot under KVM failed: the guest daemon did not answer',
  });
  assert.equal(written.accelerator, 'tcg');
  assert.match(written.reason, /a boot under KVM failed: the guest daemon did not answer/);
  const read = await readProbeFor(cache, VERSION, HOST);
  assert.equal(read?.accelerator, 'tcg');
  assert.equal(hasKvm ? read?.reason : written.reason, written.reason);
});

test('a successful boot is cached as KVM while the device exists', async (context) => {
  const cache = await cacheFolder(context);
  await writeProbe(cache, VERSION, HOST, BOOTED);
  assert.equal((await readProbeFor(cache, VERSION, HOST))?.accelerator, hasKvm ? 'kvm' : 'tcg');
});

test('a cached probe applies only to its QEMU, kernel and processor', async (context) => {
  const cache = await cacheFolder(context);
  await writeProbe(cache, VERSION, HOST, BOOTED);
  const others = [
    await readProbeFor(cache, { ...VERSION, text: '10.0.3' }, HOST),
    await readProbeFor(cache, VERSION, { ...HOST, kernel: '6.12.0' }),
    await readProbeFor(cache, VERSION, { ...HOST, cpuModel: 'AMD EPYC 9' }),
  ];
  assert.deepEqual(
    others.map((probe) => probe?.accelerator),
    Array.from({ length: 3 }, () => (hasKvm ? undefined : 'tcg')),
  );
});

test('a probe names the processor of new VMs, those that this host has, and whether KVM is nested', async (context) => {
  const cache = await cacheFolder(context);
  const probe = await writeProbe(cache, VERSION, { ...HOST, isVm: true }, BOOTED);
  assert.deepEqual([probe.cpuModel, probe.cpuModels], ['EPYC-v2', ['EPYC-v2', 'EPYC-v1']]);
  assert.equal(probe.reason, 'the guest boots under KVM with the processor EPYC-v2, within another VM');
  const emulated = await writeProbe(cache, VERSION, HOST, { failure: 'it failed' });
  assert.deepEqual([emulated.cpuModel, emulated.cpuModels], ['max,la57=off', []]);
});

test('an unreadable cached probe is ignored', async (context) => {
  const cache = await cacheFolder(context);
  await writeProbe(cache, VERSION, HOST, BOOTED);
  const [name = ''] = await readdir(join(cache, 'template'));
  await writeFile(join(cache, 'template', name), '{"accelerator": "kvm"');
  assert.equal((await readProbeFor(cache, VERSION, HOST))?.accelerator, hasKvm ? undefined : 'tcg');
});
