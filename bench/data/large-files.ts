// A large file into a sandbox and out of it, with SDK and CLI, each cut in the middle and resumed:
// rate, and peak memory of the processes between.
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sha256OfFile } from '@berth/os/digest.ts';
import { Berth, BerthError, type SandboxFiles } from '../../sdk/src/index.ts';
import { CuttingProxy } from '../../cli/test/world/cutting-proxy.ts';
import { timed, type BenchWorld } from '../world/installation.ts';
import { measured, type Measured } from '../world/statistics.ts';
import { peaksDuring, type Role } from './peak-memory.ts';

const CLI = join(import.meta.dirname, '../../cli/src/main.ts');
const BLOCK_BYTES = 4_194_304;
const MIB = 1_048_576;
const SHOWN: Readonly<Record<Role, string>> = {
  Cli: 'berth cp',
  Api: 'API',
  Host: 'host daemon',
  Gateway: 'guest gateway',
  Guest: 'guest daemon',
  Helper: 'file helper',
};

export async function measureLargeFiles(world: BenchWorld, mib: number): Promise<Measured[]> {
  const { client, progress, url } = world;
  const bytes = mib * MIB;
  const folder = await mkdtemp(join(tmpdir(), 'berth-bench-large-'));
  const proxy = await CuttingProxy.start(url);
  try {
    return await progress.step(`a file of ${mib} MiB, cut in the middle`, async (report) => {
      const id = await client.createAwake();
      const isFake = (await world.host()).driver === 'fake';
      const [source, copy] = [join(folder, 'source'), join(folder, 'copy')];
      const digest = await makeFile(source, bytes);
      const { files } = await new Berth({ url: proxy.url, apiKey: client.token }).sandboxes.get(id);
      const ways: readonly [key: string, label: string, work: () => Promise<void>][] = [
        ['SdkUp', 'SDK up', () => sdkUp(files, source, proxy, bytes)],
        ['SdkDown', 'SDK down', () => sdkDown(files, proxy, { bytes, digest })],
        ['CliUp', 'CLI up', () => cliUp(proxy, client.token, [source, `${id}:bench-cli`], bytes)],
        ['CliDown', 'CLI down', () => cliDown(proxy, client.token, [`${id}:bench-cli`, copy], bytes)],
      ];
      const peaksOf = async (key: string, work: () => Promise<void>): Promise<Measured[]> => {
        const peaks = await peaksDuring(world, { sandboxId: id, isFake }, work);
        return (Object.keys(SHOWN) as Role[]).flatMap((role) => {
          const peak = peaks[role];
          const label = `  ${SHOWN[role]}, peak resident`;
          return peak === undefined ? [] : [measured(`large${key}${role}PeakMib`, label, 'MiB', [peak])];
        });
      };
      const rows = await peaksOf('Before', async () => undefined);
      for (const [key, label, work] of ways) {
        report(label);
        let ms = 0;
        const peaks = await peaksOf(key, async () => {
          ms = await timed(work);
        });
        rows.push(measured(`large${key}MibPerSecond`, label, 'MiB/s', [mib / (ms / 1_000)]), ...peaks);
      }
      if ((await sha256OfFile(copy)) !== digest) throw new Error('the file came back with other bytes');
      await client.destroy(id);
      return rows;
    });
  } finally {
    await proxy.close();
    await rm(folder, { recursive: true });
  }
}

/** Returns the SHA-256. Blocks of random bytes differ by their number. */
async function makeFile(path: string, bytes: number): Promise<string> {
  const block = randomBytes(BLOCK_BYTES);
  const hash = createHash('sha256');
  const file = await open(path, 'wx');
  try {
    for (let at = 0; at < bytes; at += BLOCK_BYTES) {
      block.writeDoubleLE(at);
      const part = block.subarray(0, Math.min(BLOCK_BYTES, bytes - at));
      hash.update(part);
      await file.writeFile(part);
    }
  } finally {
    await file.close();
  }
  return hash.digest('hex');
}

function cutHalfway(proxy: CuttingProxy, bytes: number): void {
  proxy.cuts = [proxy.passed + bytes / 2];
}

function expectCut({ cuts }: CuttingProxy): void {
  if (cuts.length > 0) throw new Error('the connection was not cut');
}

async function sdkUp(files: SandboxFiles, source: string, proxy: CuttingProxy, bytes: number): Promise<void> {
  cutHalfway(proxy, bytes);
  const file = await open(source);
  try {
    const slice = async (from: number, to: number): Promise<Blob> =>
      new Blob([(await file.read(new Uint8Array(to - from), 0, to - from, from)).buffer]);
    await files.uploadResumable('bench-sdk', { size: bytes, slice }, { key: source });
  } finally {
    await file.close();
  }
  expectCut(proxy);
}

async function sdkDown(
  files: SandboxFiles,
  proxy: CuttingProxy,
  { bytes, digest }: { bytes: number; digest: string },
): Promise<void> {
  cutHalfway(proxy, bytes);
  const hash = createHash('sha256');
  let etag: string | undefined;
  for (let at = 0; at < bytes;) {
    try {
      const part = await files.download('bench-sdk', at > 0 && etag !== undefined ? { from: at, ifRange: etag } : {});
      if (part.from !== at) throw new Error(`the part begins at ${part.from}, not at ${at}`);
      ({ etag } = part);
      for await (const chunk of part.stream) {
        hash.update(chunk);
        at += chunk.length;
      }
    } catch (error) {
      if (!(error instanceof BerthError) || !error.retryable) throw error;
    }
  }
  expectCut(proxy);
  if (hash.digest('hex') !== digest) throw new Error('the file came back with other bytes');
}

/** Kills the first run in the middle. */
async function cliUp(proxy: CuttingProxy, token: string, ends: readonly string[], bytes: number): Promise<void> {
  const half = proxy.passed + bytes / 2;
  const stop = new AbortController();
  proxy.onPassed = (passed) => {
    if (passed > half) stop.abort();
  };
  if ((await copy(proxy, token, ends, stop.signal)) !== null) throw new Error('berth cp ended before it was killed');
  proxy.onPassed = () => undefined;
  if ((await copy(proxy, token, ends)) !== 0) throw new Error('the second berth cp failed');
  if (proxy.passed > half + bytes * 0.75) throw new Error('the second berth cp began anew');
}

async function cliDown(proxy: CuttingProxy, token: string, ends: readonly string[], bytes: number): Promise<void> {
  cutHalfway(proxy, bytes);
  if ((await copy(proxy, token, ends)) !== 0) throw new Error('berth cp failed');
  expectCut(proxy);
}

/** Runs `berth cp`. Resolves with its exit code; null: killed. */
async function copy(
  proxy: CuttingProxy,
  token: string,
  ends: readonly string[],
  kill?: AbortSignal,
): Promise<number | null> {
  const env = { ...process.env, BERTH_URL: proxy.url, BERTH_API_KEY: token };
  const child = spawn(process.execPath, [CLI, 'cp', ...ends], { env, stdio: ['ignore', 'ignore', 'inherit'] });
  kill?.addEventListener('abort', () => child.kill('SIGKILL'), { once: true });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code;
}
