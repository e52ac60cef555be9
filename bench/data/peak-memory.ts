// Peak resident memory of every process that the bytes of a transfer pass, except the SDK's.
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { BenchWorld } from '../world/installation.ts';

const SAMPLE_MS = 250;

const ROLES = {
  Cli: /\/cli\/src\/main\.ts cp /,
  Api: /api\/src\/main\.ts/,
  Host: /\/host\/src\/main\.ts/,
  Gateway: /\/host\/src\/gateway\/main\.ts/,
  Guest: /^\S*node .*\/guestd\.mjs/,
  Helper: /^perl .*files\.sock/s,
} as const;
export type Role = keyof typeof ROLES;

/** Prints command line and peak of each process inside a VM. */
const INSIDE = `for p in /proc/[0-9]*; do
  printf 'P %s\\n' "$(tr '\\0\\n' '  ' < $p/cmdline | tail -c 4000)"; grep VmHWM $p/status
done 2> /dev/null`;

/**
 * Samples while `work` runs, and returns the peaks in MiB. Those of the host are since the start of
 * the work; those inside a VM, where the kernel cannot be told to forget, since the VM started.
 */
export async function peaksDuring(
  { client }: BenchWorld,
  { sandboxId, isFake }: { sandboxId: string; isFake: boolean },
  work: () => Promise<void>,
): Promise<Partial<Record<Role, number>>> {
  const peaks: Partial<Record<Role, number>> = {};
  const take = (command: string, kib: number): void => {
    for (const [role, pattern] of Object.entries(ROLES))
      if (pattern.test(command)) peaks[role as Role] = Math.max(peaks[role as Role] ?? 0, kib / 1_024);
  };
  for (const pid of await descendants()) await writeFile(`/proc/${pid}/clear_refs`, '5').catch(() => undefined);
  const sample = async (): Promise<void> => {
    for (const pid of await descendants()) {
      const [command, status] = await Promise.all(['cmdline', 'status'].map((name) => read(pid, name)));
      take((command ?? '').replaceAll('\0', ' '), kibOf(status ?? ''));
    }
    if (isFake) return;
    const { stdout } = (await client.call('POST', `/v1/sandboxes/${sandboxId}/exec`, { command: INSIDE })) as {
      stdout: string;
    };
    for (const process of stdout.split(/^P /m)) take(process.split('\n')[0] ?? '', kibOf(process));
  };
  const over = new AbortController();
  const sampling = (async () => {
    while (!over.signal.aborted) {
      await sample();
      await delay(SAMPLE_MS);
    }
  })();
  // Reported where it is awaited.
  sampling.catch(() => undefined);
  try {
    await work();
  } finally {
    over.abort();
    await sampling;
  }
  return peaks;
}

/** Processes below this one: those of the installation, and its fake VMs. */
async function descendants(): Promise<number[]> {
  const children = new Map<number, number[]>();
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const stat = await read(Number(name), 'stat');
    const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const found = [...(children.get(process.pid) ?? [])];
  for (const pid of found) found.push(...(children.get(pid) ?? []));
  return found;
}

async function read(pid: number, name: string): Promise<string> {
  return await readFile(`/proc/${pid}/${name}`, 'latin1').catch(() => '');
}

function kibOf(status: string): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0);
}
