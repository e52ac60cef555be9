// The processes inside one fake VM: who they are, stopping and continuing all of them, and what the
// kernel says they use. They are those of the process namespace whose first process is recorded.
import { readFileSync } from 'node:fs';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { DriverError } from '../driver.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { killProcess, readProcess } from '@berth/os/process-identity.ts';

/** A process that waits for a slow disk stops when it has its answer. */
const STOP_DEADLINE_MS = 60_000;
const STEP_MS = 2;
/** Of every Linux that Node runs on. */
const MS_PER_TICK = 10;

interface Member {
  process: ProcessIdentity;
  /** It does not run: stopped, or a zombie. */
  still: boolean;
}

/**
 * Stops every process of the VM, those that are being forked too. Rejects when it is aborted or
 * when one does not stop; some may stand still then.
 */
export async function freeze(init: ProcessIdentity, signal: AbortSignal): Promise<void> {
  const namespace = await namespaceOf(init.pid);
  const deadlineMs = performance.now() + STOP_DEADLINE_MS;
  for (;;) {
    const running = (await membersOf(namespace)).filter(({ still }) => !still);
    if (running.length === 0) return;

    signal.throwIfAborted();
    if (performance.now() > deadlineMs) throw new DriverError(`${running.length} processes of the fake VM do not stop`);

    await Promise.all(running.map(({ process }) => killProcess(process, 'SIGSTOP')));
    await delay(STEP_MS);
  }
}

/**
 * Lets every process of the VM go on. One that is stopped starts no other, so one look finds all.
 */
export async function thaw(init: ProcessIdentity): Promise<void> {
  const members = await membersOf(await namespaceOf(init.pid));
  await Promise.all(members.map(({ process }) => killProcess(process, 'SIGCONT')));
}

/** Memory of all processes of the VM that is in RAM, and what of it is no file's. */
export async function memoryOf(init: ProcessIdentity): Promise<{ residentMib: number; unsharedMib: number }> {
  const sum = { residentMib: 0, unsharedMib: 0 };
  for (const { process } of await membersOf(await namespaceOf(init.pid))) {
    const status = (await readUnlessGone(() => readFile(`/proc/${process.pid}/status`, 'latin1'))) ?? '';
    sum.residentMib += kibOf(status, 'VmRSS') / 1_024;
    sum.unsharedMib += kibOf(status, 'RssAnon') / 1_024;
  }
  return sum;
}

/**
 * Processor time of the VM's processes, those that ended included; null when the first one is gone.
 */
export function processorMs(init: ProcessIdentity): number | null {
  const own = ticksOf(init.pid);
  if (own === null || own.startTicks !== init.startTicks) return null;

  let ticks = 0;
  const left = [init.pid];
  for (let pid = left.pop(); pid !== undefined; pid = left.pop()) {
    ticks += ticksOf(pid)?.used ?? 0;
    left.push(...childrenOf(pid));
  }
  return ticks * MS_PER_TICK;
}

async function membersOf(namespace: string): Promise<Member[]> {
  const members: Member[] = [];
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name) || (await readUnlessGone(() => readlink(`/proc/${name}/ns/pid`))) !== namespace) continue;

    const process = await readProcess(Number(name));
    const state = statOf(Number(name))?.[0];
    if (process !== null && state !== undefined) members.push({ process, still: /[TtZX]/.test(state) });
  }
  return members;
}

async function namespaceOf(pid: number): Promise<string> {
  const [own, its] = await Promise.all([
    readlink('/proc/self/ns/pid'),
    readUnlessGone(() => readlink(`/proc/${pid}/ns/pid`)),
  ]);
  if (its === null || its === own) throw new DriverError(`process ${pid} is not the first of a fake VM`);

  return its;
}

function childrenOf(pid: number): number[] {
  return (readNow(`/proc/${pid}/task/${pid}/children`) ?? '').split(' ').filter(Boolean).map(Number);
}

/** User and system time, of itself and of the children it waited for. */
function ticksOf(pid: number): { used: number; startTicks: string } | null {
  const fields = statOf(pid);
  const startTicks = fields?.[19];
  return fields === null || startTicks === undefined
    ? null
    : { used: fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0), startTicks };
}

/** Fields 3 and on of /proc/PID/stat: they stand after the last parenthesis of the name. */
function statOf(pid: number): string[] | null {
  const stat = readNow(`/proc/${pid}/stat`);
  return stat === null ? null : stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

function kibOf(status: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0);
}

function readNow(path: string): string | null {
  try {
    return readFileSync(path, 'latin1');
  } catch (error) {
    return unlessGone(error);
  }
}

async function readUnlessGone(read: () => Promise<string>): Promise<string | null> {
  return read().catch(unlessGone);
}

/**
 * Null for a process that is gone, and for one that is kept from this user, and so is none of its.
 */
function unlessGone(error: unknown): null {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'ENOENT' || code === 'ESRCH' || code === 'EACCES') return null;

  throw error;
}
