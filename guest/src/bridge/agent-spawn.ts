// Starts an agent's program as the sandbox user, in the session's cgroup and its own POSIX session.
import { spawn, type ChildProcess } from 'node:child_process';
import { environmentOf } from '../keeper/environment.ts';
import type { OomProtection } from '../machine/oom-protection.ts';
import type { BridgeConfig } from './config.ts';
import { programGroup, SESSION_VARIABLE } from './processes.ts';

/** As root: joins the cgroup, then drops all privileges. The pid stays the same. */
const JOIN_AND_DROP =
  'if [ -n "$0" ]; then echo $$ >"$0/cgroup.procs" || exit 126; fi; ' +
  'uid=$1; gid=$2; shift 2; exec /usr/bin/setpriv --reuid "$uid" --regid "$gid" --clear-groups -- "$@"';

export function spawnAgent(
  { user, codeFolder, cgroup, sessionId }: BridgeConfig,
  protection: OomProtection | undefined,
  [program, args, env]: [string, readonly string[], Readonly<Record<string, string>>],
): ChildProcess {
  const isRoot = process.getuid?.() === 0;
  const line = isRoot
    ? [
        '/bin/sh',
        '-c',
        JOIN_AND_DROP,
        cgroup === null ? '' : programGroup(cgroup),
        String(user.uid),
        String(user.gid),
        program,
        ...args,
      ]
    : [program, ...args];
  const [file = '', ...rest] = line;
  protection?.remove();
  try {
    return spawn(file, rest, {
      cwd: codeFolder,
      env: { ...environmentOf(user, codeFolder, 'dumb'), ...env, [SESSION_VARIABLE]: sessionId },
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    });
  } finally {
    protection?.restore();
  }
}
