// Memory and latency of the API under attack: one key sends 600 file bodies of 16 MB, two orgs
// write escaped files of 2 MiB on 12 connections each, 5,000 slow connections have no key. Another
// tenant reads its sandbox all the while. Prints the API's memory at the start, at its peak and a
// minute after the attack, and the tenant's latencies.
// Usage: npm run bench:hostile -- [--bodies N] [--connections N] [--escaped N] [--seconds N]
// [--json]
import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BODIES_IN_FLIGHT_MIB } from '@berth/contract/route/limits.ts';
import { openBenchControlPlane } from './api/control-plane.ts';
import { Load } from './api/load-client.ts';
import { insertReadySandbox } from './api/world.ts';
import { ApiProcess } from './hostile/api-process.ts';
import type { AttackOrder, AttackReport } from './hostile/attack.ts';
import { startHostStandIn } from './hostile/host-stand-in.ts';
import { hardware } from './world/hardware.ts';
import { readOptions } from './world/options.ts';
import { figureOf, percentile, round } from './world/statistics.ts';

const ATTACK = fileURLToPath(new URL('hostile/attack.ts', import.meta.url));
const WARM_UP_MS = 10_000;
const AFTER_MS = 60_000;
const TENANT_CONNECTIONS = 4;
const TENANT_EVERY_MS = 50;

const options = readOptions({
  bodies: { type: 'string', default: '600' },
  connections: { type: 'string', default: '5000' },
  escaped: { type: 'string', default: '12' },
  seconds: { type: 'string', default: '30' },
  json: { type: 'boolean', default: false },
});
const bodies = options.whole('bodies', 1, 10_000);
const connections = options.whole('connections', 1, 10_000);
const escaped = options.whole('escaped', 1, 100);
const seconds = options.whole('seconds', 1, 10_000);

const folder = await mkdtemp(join(tmpdir(), 'berth-bench-hostile-'));
const plane = await openBenchControlPlane();
const load = new Load();
try {
  await writeFile(join(folder, 'token'), randomBytes(16).toString('hex'));
  await writeFile(join(folder, 'secret-key'), randomBytes(32).toString('base64'));
  const api = await ApiProcess.start({
    BERTH_DATABASE_URL: plane.databaseUrl,
    BERTH_HOST_URL: 'http://127.0.0.1:9',
    BERTH_HOST_TOKEN_FILE: join(folder, 'token'),
    BERTH_SECRET_KEY_FILE: join(folder, 'secret-key'),
    BERTH_OUTBOX_FOLDER: join(folder, 'outbox'),
    // The tenant reads faster than a key may by default; the attacker sends fewer requests.
    BERTH_REQUESTS_PER_MINUTE: '100000',
  });
  try {
    const attacker = await plane.makeOrg();
    const accomplice = await plane.makeOrg();
    await using host = await startHostStandIn(plane.db);
    const attackersId = await insertReadySandbox(plane.db, attacker, host);
    const order: AttackOrder = {
      port: api.port,
      token: attacker.token,
      sandboxId: attackersId,
      bodies,
      connections,
      escaping: [
        { token: attacker.token, sandboxId: attackersId, connections: escaped },
        {
          token: accomplice.token,
          sandboxId: await insertReadySandbox(plane.db, accomplice, host),
          connections: escaped,
        },
      ],
    };
    const path = `/v1/sandboxes/${await insertReadySandbox(plane.db, plane.first)}`;
    const read = (milliseconds: number): Promise<{ latenciesMs: number[] }> =>
      load.run({
        port: api.port,
        path,
        token: plane.first.token,
        connections: TENANT_CONNECTIONS,
        milliseconds,
        everyMs: TENANT_EVERY_MS,
      });
    const calm = await read(WARM_UP_MS);
    const startMib = api.memory().nowMib;

    const attack = fork(ATTACK, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    attack.send(order);
    const attacked = await read(seconds * 1_000);
    const reported = once(attack, 'message');
    attack.send('stop');
    const [report] = (await reported) as [AttackReport];
    const exited = once(attack, 'exit');
    attack.disconnect();
    await exited;
    await read(AFTER_MS);
    const { nowMib: afterMib, peakMib } = api.memory();

    const p99 = (latencies: number[]): number => round(percentile(latencies, 0.99));
    const result = {
      apiPeakMib: Math.round(peakMib),
      otherTenantP99Ms: p99(attacked.latenciesMs),
      apiAfterRatio: round(afterMib / startMib, 2),
      apiStartMib: Math.round(startMib),
      apiAfterMib: Math.round(afterMib),
      otherTenantP50Ms: round(figureOf(attacked.latenciesMs).median),
      otherTenantMaxMs: round(Math.max(...attacked.latenciesMs)),
      calmP99Ms: p99(calm.latenciesMs),
      answers: report,
      bodies,
      connections,
      escaped,
      seconds,
      bodiesInFlightMib: BODIES_IN_FLIGHT_MIB,
      machine: hardware(),
      versions: { node: process.version, postgres: plane.postgresVersion },
    };
    console.log(
      `${result.machine}, Node ${process.version}; attackers, tenant, API and Postgres share the cores\n` +
        `${bodies} bodies of 16 MB with one key, ${escaped} writers of escaped files in each of two ` +
        `orgs, ${connections} slow connections without a key, ${seconds} s\n\n` +
        `API memory: ${result.apiStartMib} MiB at the start, ${result.apiPeakMib} at the peak, ` +
        `${result.apiAfterMib} after ${AFTER_MS / 1_000} s (${result.apiAfterRatio} of the start)\n` +
        `GET of another tenant: half within ${result.otherTenantP50Ms} ms, 99 % within ` +
        `${result.otherTenantP99Ms} ms, all within ${result.otherTenantMaxMs} ms; ` +
        `99 % within ${result.calmP99Ms} ms before\n` +
        `Answers to the attackers: ${Object.entries(report)
          .map(([what, times]) => `${what}: ${times}`)
          .join(', ')}`,
    );
    if (options.values.json) console.log(JSON.stringify(result));
  } finally {
    await api.stop();
  }
} finally {
  await load.close();
  await plane.close();
  await rm(folder, { recursive: true, force: true });
}
