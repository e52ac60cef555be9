import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { readProbe } from '@berth/host/template.ts';
import { readConfig } from '../../../src/config/config.ts';
import { CHECKOUT, defaultCacheFolder } from '../../../src/config/folders.ts';
import { OperatorFailure } from '../../../src/output/failure.ts';
import { emulationFault, requireIsolation } from '../../../src/roles/host/emulation.ts';
import { servedUrls } from '../../../src/roles/control-plane/service.ts';
import { startInstallation } from '../../../src/roles/installation.ts';
import { Progress } from '../../../src/output/progress.ts';

const BEYOND = ['https://berth.example.test', 'http://10.0.0.5:4800', 'https://localhost.example.test', 'http://[::2]'];
const LOOPBACK = [
  'http://127.0.0.1:4800',
  'http://127.1.2.3',
  'http://[::1]:4800',
  'http://localhost',
  'https://a.localhost',
];

test("an emulated service beyond this machine needs the operator's consent", () => {
  for (const url of BEYOND) {
    for (const consent of [undefined, '', '0', 'true']) {
      const environment = { BERTH_ALLOW_EMULATION: consent };
      assert.throws(
        () => requireIsolation('tcg', [LOOPBACK[0] ?? '', url], environment),
        (error) =>
          error instanceof OperatorFailure &&
          error.message.startsWith(`cannot serve ${url}: sandboxes are emulated`) &&
          /BERTH_ALLOW_EMULATION=1/.test(error.remedy ?? ''),
      );
    }
    assert.equal(emulationFault('tcg', [url], { BERTH_ALLOW_EMULATION: '1' }), null);
  }
});

test('a service under KVM or on loopback needs no consent', () => {
  assert.equal(emulationFault('kvm', BEYOND, {}), null);
  assert.equal(emulationFault('tcg', LOOPBACK, {}), null);
});

test('an emulated service on an address of the network needs consent, whatever its public URL', () => {
  for (const [flags, environment, url] of [
    [{ listen: '0.0.0.0' }, {}, 'http://0.0.0.0:4800'],
    [{ listen: '::' }, {}, 'http://[::]:4800'],
    [{ listen: '0.0.0.0' }, { BERTH_PUBLIC_URL: 'http://127.0.0.1:4800' }, 'http://0.0.0.0:4800'],
    [{}, { BERTH_PREVIEW_URL: 'https://apps.example.test' }, 'https://apps.example.test'],
  ] as const) {
    const urls = servedUrls(readConfig({ ...flags, port: '4800' }, environment), environment);
    assert.equal(emulationFault('tcg', urls, {})?.message.startsWith(`cannot serve ${url}:`), true, url);
  }
  const invalid = { BERTH_PUBLIC_URL: 'localhost:8080', BERTH_PREVIEW_URL: 'preview.example.test:443' };
  for (const environment of [{}, invalid])
    assert.equal(emulationFault('tcg', servedUrls(readConfig({}, environment), environment), {}), null);
});

test('an emulated service with a public URL does not start without consent', async (context) => {
  const cacheDir = defaultCacheFolder(process.env);
  if ((await readProbe(cacheDir))?.accelerator !== 'tcg') return context.skip('this host has KVM');

  const folder = await mkdtemp(join(tmpdir(), 'berth-emulation-'));
  context.after(() => rm(folder, { recursive: true }));
  const environment = { BERTH_PUBLIC_URL: 'https://berth.example.test' };
  const config = readConfig({ dataDir: join(folder, 'data'), cacheDir }, environment);
  // A service that starts ends the start: otherwise its processes would keep this file alive.
  const starting = new AbortController();
  const onEvent = (): void => starting.abort(new Error('a service started'));
  const options = { checkout: CHECKOUT, config, environment, progress: new Progress(), onEvent };
  await assert.rejects(startInstallation(options, starting.signal), /^OperatorFailure: cannot serve https:/);
  assert.deepEqual(await readdir(folder), []);
});
