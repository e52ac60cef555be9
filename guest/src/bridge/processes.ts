// Processes of an agent session: members of its cgroup or, without cgroups, processes whose
// environment names the session. Finds and kills those that began in a turn.
import { chownSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { nullOn } from '@berth/os/errors.ts';
import type { GuestUser } from '../machine/config.ts';
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

/** Files by which the owner of a delegated group divides it (cgroups(7)). */
const DELEGATED = ['.', 'cgroup.procs', 'cgroup.threads', 'cgroup.subtree_control'];
/** Most groups that a session has in its own, and their depth: each is read at a kill. */
const INNER_GROUPS = { 'cgroup.max.descendants': 256, 'cgroup.max.depth': 8 } as const;
/** Group of the agent's program, so that its user can enable controllers in the session's group. */
const PROGRAM_GROUP = 'program';

/**
 * Cgroup of a session below `parent`; null if the kernel does not let us have it. Delegated to the
 * user: an agent can limit what it starts, and leave its session's group in no way.
 */
export function makeCgroup(
  parent: string,
  sessionId: string,
  { uid, gid }: Pick<GuestUser, 'uid' | 'gid'>,
): string | null {
  if (parent === '') return null;
  const session = join(parent, sessionId);
  try {
    mkdirSync(parent, { recursive: true });
    // Absent controllers are no obstacle.
    for (const controller of ['cpu', 'memory', 'pids']) {
      nullOn(['ENOENT', 'EINVAL'], () =>
        writeFileSync(join(parent, 'cgroup.subtree_control'), `+${controller}`, { flag: 'r+' }),
      );
    }
    for (const group of [session, programGroup(session)])
      for (const file of DELEGATED) chownSync(join(group, file), uid, gid);
    for (const [file, most] of Object.entries(INNER_GROUPS)) writeFileSync(join(session, file), String(most));
    return session;
  } catch {
    return null;
  }
}

/** The group in a session's group in which the agent's program starts; made if it is absent. */
export function programGroup(session: string): string {
  const group = join(session, PROGRAM_GROUP);
  mkdirSync(group, { recursive: true });
  return group;
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
