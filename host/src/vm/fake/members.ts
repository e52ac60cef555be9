// Processes of a fake VM: the members of the pid namespace whose init process is recorded. Finds,
// stops and continues them, and reads their kernel metrics.
import { readFileSync } from 'node:fs';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { constants } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { nullIf, nullOn } from '@berth/os/errors.ts';
import { DriverError } from '../driver.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { killProcess, readProcess } from '@berth/os/process-identity.ts';

/** A process blocked on a slow disk stops only after its I/O. */
const STOP_DEADLINE_MS = 60_000;
const STEP_MS = 2;
/** Same on every Linux that Node supports. */
const MS_PER_TICK = 10;

/** SIGSTOP in a set of signals of /proc/PID/status. */
const SIGSTOP_BIT = 1n << BigInt(constants.signals.SIGSTOP - 1);

interface Member {
  process: ProcessIdentity;
  /** True if stopped, a zombie, or about to stop once its stopped child has left its memory. */
  still: boolean;
}

/**
 * Stops every process of the VM, including those being forked. Rejects on abort or if one does not
 * stop; some may be stopped then.
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

/** Continues every process of the VM. Stopped processes do not fork, so one pass finds all. */
export async function resumeProcesses(init: ProcessIdentity): Promise<void> {
  const members = await membersOf(await namespaceOf(init.pid));
  await Promise.all(members.map(({ process }) => killProcess(process, 'SIGCONT')));
}

/** Resident memory of all processes of the VM, and its anonymous part. */
export async function memoryOf(init: ProcessIdentity): Promise<{ residentMib: number; unsharedMib: number }> {
  const sum = { residentMib: 0, unsharedMib: 0 };
  for (const { process } of await membersOf(await namespaceOf(init.pid))) {
    const status = (await readUnlessGone(() => readFile(`/proc/${process.pid}/status`, 'latin1'))) ?? '';
    sum.residentMib += kibOf(status, 'VmRSS') / 1_024;
    sum.unsharedMib += kibOf(status, 'RssAnon') / 1_024;
  }
  return sum;
}

/** CPU time of the VM's processes, exited ones included; null if the first one is gone. */
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
    if (process !== null && state !== undefined)
      members.push({ process, still: /[TtZX]/.test(state) || (state === 'D' && awaitsStoppedChild(process.pid)) });
  }
  return members;
}

/**
 * True for a process in vfork whose child has stopped before its exec: the process cannot stop
 * until the child goes on, and runs no code before it stops.
 */
function awaitsStoppedChild(pid: number): boolean {
  const isForking = /^(?:kernel_clone|wait_for_vfork_done)$/.test(readNow(`/proc/${pid}/wchan`) ?? '');
  const pending = /^ShdPnd:\s*([0-9a-f]+)$/m.exec(readNow(`/proc/${pid}/status`) ?? '')?.[1] ?? '0';
  return isForking && (BigInt(`0x${pending}`) & SIGSTOP_BIT) !== 0n;
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

/** User and system time of the process and its reaped children. */
function ticksOf(pid: number): { used: number; startTicks: string } | null {
  const fields = statOf(pid);
  const startTicks = fields?.[19];
  return fields === null || startTicks === undefined
    ? null
    : { used: fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0), startTicks };
}

/** Errors of a vanished process, and of another user's process, which is not the VM's. */
const GONE = ['ENOENT', 'ESRCH', 'EACCES'] as const;

/** Fields 3 and on of /proc/PID/stat, which follow the last parenthesis of the name. */
function statOf(pid: number): string[] | null {
  const stat = readNow(`/proc/${pid}/stat`);
  return stat === null ? null : stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

function kibOf(status: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0);
}

function readNow(path: string): string | null {
  return nullOn(GONE, () => readFileSync(path, 'latin1'));
}

async function readUnlessGone(read: () => Promise<string>): Promise<string | null> {
  return read().catch(nullIf(...GONE));
}
