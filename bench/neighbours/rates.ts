// Work that all neighbours do at the same time for some seconds, one resource after the other.
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '../world/client.ts';
import type { BenchWorld } from '../world/installation.ts';

export const RESOURCES = ['cpu', 'disk', 'network', 'exec'] as const;
export type Resource = (typeof RESOURCES)[number];
/** Loops, bytes written, bytes downloaded, commands in turn, per second. */
export type Rates = Record<Resource, number>;

/** File for downloads. */
const FILE = '/code/download';
const FILE_MIB = 8;

export async function measureRates(
  { client, url }: BenchWorld,
  ids: readonly string[],
  seconds: number,
): Promise<Rates[]> {
  const each = (measure: (id: string) => Promise<number>): Promise<number[]> => Promise.all(ids.map(measure));
  const cpu = await each((id) => numberOf(client, id, cpuScript(seconds)));
  const disk = await each((id) => numberOf(client, id, diskScript(seconds)));
  await Promise.all(ids.map((id) => client.exec(id, makeFile)));
  const network = await each((id) => downloaded(client, url, id, seconds));
  const exec = await each((id) => executed(client, id, seconds));
  return ids.map((_id, at) => ({
    cpu: (cpu[at] ?? 0) / seconds,
    disk: (disk[at] ?? 0) / seconds,
    network: (network[at] ?? 0) / seconds,
    exec: exec[at] ?? 0,
  }));
}

export const makeFile = `head -c ${FILE_MIB * 2 ** 20} /dev/urandom >${FILE} && echo made`;

const cpuScript = (seconds: number): string =>
  `perl -e '$SIG{ALRM} = sub { print $n; exit }; alarm ${seconds}; $n++ while 1'`;

const diskScript = (seconds: number): string =>
  `timeout ${seconds} dd if=/dev/zero of=/code/written bs=64k count=100000 oflag=direct 2>/dev/null; ` +
  'stat -c %s /code/written; rm /code/written';

async function numberOf(client: Client, id: string, command: string): Promise<number> {
  const answer = (await client.call('POST', `/v1/sandboxes/${id}/exec`, { command })) as { stdout: string };
  const value = Number(answer.stdout);
  if (!(value > 0)) throw new Error(`${command} answered ${JSON.stringify(answer)}`);
  return value;
}

/** Commands per second, in turn; at least one runs. */
async function executed(client: Client, id: string, seconds: number): Promise<number> {
  const startedAt = performance.now();
  let commands = 0;
  do {
    await client.exec(id, 'echo done');
    commands += 1;
  } while (performance.now() - startedAt < seconds * 1_000);
  return (commands * 1_000) / (performance.now() - startedAt);
}

/** Bytes of a file that was downloaded again and again. */
async function downloaded(client: Client, url: string, id: string, seconds: number): Promise<number> {
  const stop = new AbortController();
  let bytes = 0;
  const work = download(client, url, id, stop.signal, (count) => (bytes += count));
  await Promise.race([delay(seconds * 1_000), work]);
  stop.abort();
  await work;
  return bytes;
}

/** Downloads until the signal aborts. */
export async function download(
  client: Client,
  url: string,
  id: string,
  signal: AbortSignal,
  onBytes: (count: number) => void,
): Promise<void> {
  const path = `/v1/sandboxes/${id}/file/content?path=${encodeURIComponent(FILE)}`;
  while (!signal.aborted) {
    try {
      const response = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${client.token}` }, signal });
      if (response.body === null || response.status !== 200)
        throw new Error(`GET ${path}: ${response.status} ${await response.text()}`);
      for await (const chunk of response.body) onBytes((chunk as Uint8Array).length);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}
