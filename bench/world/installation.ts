// A dedicated installation for one part of the benchmark, with that part's settings, and its views
// for a caller and for root. Ends everything it started.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { HostInfo } from '@berth/protocol/calls/vms.ts';
import { readConfig } from '@berth/machine/config/config.ts';
import { CHECKOUT } from '@berth/machine/config/folders.ts';
import { startInstallation } from '@berth/machine/roles/installation.ts';
import { findFreePort } from '@berth/machine/config/ports.ts';
import type { Progress } from '@berth/machine/output/progress.ts';
import { readHostInfo } from '@berth/machine/roles/host/service.ts';
import { Client } from './client.ts';

const PART_DEADLINE_MS = 60 * 60_000;
const POOL_DEADLINE_MS = 180_000;
const POOL_POLL_MS = 25;

export interface BenchWorld {
  client: Client;
  dataFolder: string;
  /** Base URL of the API. */
  url: string;
  /** Network of the guests. */
  guestCidr: string;
  progress: Progress;
  /** Current state from the host daemon. */
  host: () => Promise<HostInfo>;
  /** Resolves when that many VMs wait in the pool. */
  poolHas: (machines: number) => Promise<void>;
}

/** Runs the work on an installation with these BERTH_* variables, then removes it entirely. */
export async function withWorld<T>(
  progress: Progress,
  environment: Record<string, string>,
  work: (world: BenchWorld) => Promise<T>,
): Promise<T> {
  const dataFolder = await mkdtemp(join(tmpdir(), 'berth-bench-'));
  const signal = AbortSignal.timeout(PART_DEADLINE_MS);
  // A single key makes all calls.
  const variables = { ...process.env, BERTH_REQUESTS_PER_MINUTE: '1000000', ...environment };
  const config = readConfig({ dataDir: dataFolder, port: String(await findFreePort('127.0.0.1')) }, variables);
  const installation = await startInstallation(
    { checkout: CHECKOUT, config, progress, environment: variables, onEvent: () => undefined },
    signal,
  );
  try {
    if (!installation.first.created) throw new Error('a new data folder has an account already');
    const client = new Client({ url: installation.url, ...installation.first });
    const host = async (): Promise<HostInfo> => {
      const info = await readHostInfo(installation.paths, signal);
      if (info === null) throw new Error('the host daemon does not answer');
      return info;
    };
    const poolHas = async (machines: number): Promise<void> => {
      const deadline = performance.now() + POOL_DEADLINE_MS;
      for (;;) {
        const { pool } = await host();
        if (pool.ready >= machines) return;
        if (performance.now() > deadline)
          throw new Error(`the pool has ${pool.ready} machines rather than ${machines}, and aims at ${pool.target}`);
        await delay(POOL_POLL_MS);
      }
    };
    try {
      const { url } = installation;
      return await work({ client, dataFolder, url, guestCidr: config.guestCidr, progress, host, poolHas });
    } finally {
      // After a failure too: VMs outlive the service.
      await client.destroyAll();
      client.close();
    }
  } finally {
    await installation.stop();
    await rm(dataFolder, { recursive: true, force: true });
  }
}

export async function timed(act: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await act();
  return performance.now() - startedAt;
}
