import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { readProbe } from '@berth/host/template.ts';
import { readConfig } from '../../../src/config/config.ts';
import { defaultCacheFolder } from '../../../src/config/folders.ts';
import { vmChecks } from '../../../src/roles/host/vm-checks.ts';

test('remedies of missing parts name the folders of the installation', async (context) => {
  const folder = await mkdtemp(join(tmpdir(), "berth it's-"));
  context.after(() => rm(folder, { recursive: true }));
  const config = readConfig({ dataDir: join(folder, 'data'), cacheDir: join(folder, 'cache') }, {});
  // Hosts without /dev/kvm need no probe, so none is missing.
  const unprobed = (await readProbe(config.cacheFolder)) === null;
  const missing = vmChecks(config, {}, context.signal).filter(({ subject }) => unprobed || subject !== 'accelerator');
  assert.deepEqual(
    missing.map(({ subject }) => subject),
    unprobed ? ['accelerator', 'image', 'template'] : ['image', 'template'],
  );
  for (const check of missing) {
    const [finding, ...others] = await check.run();
    const quoted = folder.replace("'", String.raw`'\''`);
    assert.deepEqual(
      [finding?.subject, finding?.grade, finding?.remedy, others],
      [check.subject, 'warn', `./berth up --data-dir '${quoted}/data' --cache-dir '${quoted}/cache' creates it`, []],
    );
  }
});

test('the doctor finds a fault in an emulated service with a public URL, and warns with consent', async (context) => {
  const cacheDir = defaultCacheFolder(process.env);
  if ((await readProbe(cacheDir))?.accelerator !== 'tcg') return context.skip('this host has KVM');
  const found = async (environment: Record<string, string>): Promise<string> => {
    const [accelerator] = vmChecks(readConfig({ cacheDir }, environment), environment, context.signal);
    const [{ grade, detail, remedy } = assert.fail()] = (await accelerator?.run()) ?? [];
    return `${grade}: ${detail} -> ${remedy}`;
  };
  const beyond = { BERTH_PUBLIC_URL: 'https://berth.example.test' };
  assert.match(
    await found(beyond),
    /^fault: .*cannot serve https:\/\/berth\.example\.test: .* -> .*BERTH_ALLOW_EMULATION=1/,
  );
  const risk = /^warn: tcg: .* -> sandboxes are emulated, which QEMU does not treat as a security boundary/;
  assert.match(await found({ ...beyond, BERTH_ALLOW_EMULATION: '1' }), risk);
  assert.match(await found({}), risk);
});
