// Processes of an agent session: members of its cgroup or, without cgroups, processes whose
// environment names the session. Finds and kills those that began in a turn.
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { nullOn } from '@berth/os/errors.ts';
import { killProcess, readStat, type ProcessIdentity } from '@berth/os/process-identity.ts';

/** Environment variable that names the session. */
export const SESSION_VARIABLE = 'BERTH_AGENT_SESSION';
const KILL_DEADLINE_MS = 5_000;
const STEP_MS = 10;
const TICKS_PER_SECOND = 100;

export interface ProcessScope {
  sessionId: string;
  /** Folder of the session's cgroup; null without cgroups. */
  cgroup: string | null;
}

/** Cgroup of a session below `parent`; null if the kernel does not let us have it. */
export function makeCgroup(parent: string, sessionId: string): string | null {
  if (parent === '') return null;
  const folder = join(parent, sessionId);
  try {
    mkdirSync(folder, { recursive: true });
    readFileSync(join(folder, 'cgroup.procs'));
    return folder;
  } catch {
    return null;
  }
}

/** Ticks since boot, in the unit of the start time of a process. */
export function ticksNow(): number {
  return Math.floor(Number(readFileSync('/proc/uptime', 'latin1').split(' ')[0]) * TICKS_PER_SECOND);
}

/**
 * Kills the processes of the session that began at `ticks` or later, except `kept`, until none is
 * left. Background processes of earlier turns began before. Gives up after 5 s.
 */
export async function killSince(scope: ProcessScope, ticks: number, kept: ProcessIdentity | null): Promise<void> {
  const deadline = performance.now() + KILL_DEADLINE_MS;
  for (;;) {
    const found = pidsOf(scope).filter((pid) => {
      if (pid === kept?.pid) return false;
      const fields = readStat(pid)?.fields;
      return fields !== undefined && fields[0] !== 'Z' && fields[0] !== 'X' && Number(fields[19]) >= ticks;
    });
    if (found.length === 0 || performance.now() > deadline) return;

    for (const pid of found) nullOn(['ESRCH', 'EPERM'], () => process.kill(pid, 'SIGKILL'));

    await delay(STEP_MS);
  }
}

export async function killIfAlive(recorded: ProcessIdentity | null): Promise<void> {
  if (recorded !== null) await killProcess(recorded, 'SIGKILL').catch(() => false);
}

function pidsOf({ sessionId, cgroup }: ProcessScope): number[] {
  return cgroup === null ? marked(sessionId) : members(cgroup);
}

/** Includes cgroups that the agent made inside its own. */
function members(folder: string): number[] {
  const procs = nullOn(['ENOENT', 'ENODEV', 'EOPNOTSUPP'], () => readFileSync(join(folder, 'cgroup.procs'), 'latin1'));
  const inner = nullOn(['ENOENT'], () => readdirSync(folder, { withFileTypes: true })) ?? [];
  return [
    ...(procs ?? '').split('\n').filter(Boolean).map(Number),
    ...inner.filter((entry) => entry.isDirectory()).flatMap(({ name }) => members(join(folder, name))),
  ];
}

function marked(sessionId: string): number[] {
  const mark = `${SESSION_VARIABLE}=${sessionId}`;
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      const environment = nullOn(['ENOENT', 'ESRCH', 'EACCES', 'EPERM'], () =>
        readFileSync(`/proc/${name}/environ`, 'latin1'),
      );
      return environment?.split('\0').includes(mark) ?? false;
    })
    .map(Number);
}
