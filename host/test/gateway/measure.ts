// Measures exec with and without the guest gateway on one emulated VM, in turn:
//   node_modules/.bin/node host/test/gateway/measure.ts [PAIRS]
// Needs root and the built image in the cache folder. Prints medians in milliseconds and the ratio.
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exec } from '@berth/protocol/calls/exec.ts';
import { readFile } from '@berth/protocol/calls/files.ts';
import { defaultCacheFolder } from '../../../image/src/config.ts';
import { DIRECT_GUESTS, type GuestClient } from '../../src/guest/client.ts';
import { makeGuestSecret, makeIdentity, sendIdentity } from '../../src/guest/identity.ts';
import { newestImageFolder } from '../../src/make-driver.ts';
import { createQemuDriver } from '../../src/vm/qemu/driver.ts';
import { startGateway } from './ways.ts';

const PAIRS = Number(process.argv[2] ?? 100);
const NEVER = new AbortController().signal;

const cacheFolder = defaultCacheFolder(process.env);
const dataFolder = await mkdtemp(join(tmpdir(), 'berth-measure-'));
const open = await startGateway();
const driver = createQemuDriver({
  cacheFolder,
  imageFolder: await newestImageFolder(cacheFolder),
  guests: DIRECT_GUESTS,
  network: { instanceId: 'measure', dataFolder, cidr: '10.231.0.0/16', idleSlots: 1 },
  log: () => undefined,
});
await driver.prepare();
const spec = { vcpu: 1, memoryMib: 1_024, diskGib: 10, hostname: 'measured', sshAuthorizedKeys: [] };
const id = 'sbx_aaaaaaaaaaaaaaaaaaaaaaaa';
const folder = join(dataFolder, 'vm');
await mkdir(folder, { mode: 0o700 });
let state = {};
const vm = { id, folder, spec, signal: NEVER, saveState: async (saved: object) => void (state = saved) };
const running = await driver.create({ ...vm, readDiskKey: () => Promise.resolve(null) });
try {
  const secret = makeGuestSecret();
  const direct = DIRECT_GUESTS.clientOf(running.guest);
  await sendIdentity(direct, makeIdentity(spec, secret), NEVER, 60_000);
  const behind = open.guests.clientOf(running.guest, secret);
  const works: Record<string, (client: GuestClient) => Promise<unknown>> = {
    exec: (client) => client.call(exec, { body: { command: 'true', timeoutSeconds: 10 } }),
    read: async (client) => await (await client.stream(readFile, { query: { path: '/etc/hostname' } })).toArray(),
  };
  for (const [name, work] of Object.entries(works)) {
    const took = { direct: [] as number[], behind: [] as number[] };
    for (let pair = -5; pair < PAIRS; pair += 1) {
      for (const [way, client] of pair % 2 === 0 ? waysTo(direct, behind) : waysTo(direct, behind).toReversed()) {
        const startedMs = performance.now();
        await work(client);
        if (pair >= 0) took[way].push(performance.now() - startedMs);
      }
    }
    const [one, other] = [median(took.direct), median(took.behind)];
    console.log(name, {
      direct: one.toFixed(2),
      gateway: other.toFixed(2),
      ratio: (other / one).toFixed(3),
      pairs: PAIRS,
    });
  }
  behind.close();
  direct.close();
} finally {
  await driver.destroy(folder, state);
  await driver.close();
  await open.close();
  await rm(dataFolder, { recursive: true, force: true });
}

function waysTo(direct: GuestClient, behind: GuestClient): ['direct' | 'behind', GuestClient][] {
  return [
    ['direct', direct],
    ['behind', behind],
  ];
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}
