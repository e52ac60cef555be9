// Runs a program inside another root file system with separate mounts and processes and an empty
// network. Nothing of it outlives the call or the caller.
import type { CommandOptions } from '@berth/os/command.ts';
import { runCommandForBytes } from '@berth/os/command.ts';

interface InsideRootOptions extends Omit<CommandOptions, 'env'> {
  /** Read-only binds: path inside to host path. */
  readOnly?: Record<string, string>;
  /** Writable binds: path inside to host path. */
  writable?: Record<string, string>;
  /** Mounts the root itself read-only. */
  readOnlyRoot?: boolean;
  env?: Record<string, string>;
}

/** Resolves with the program's output. The environment is independent of the host's. */
export async function runInsideRoot(
  root: string,
  command: readonly string[],
  options: InsideRootOptions,
): Promise<Buffer> {
  const { readOnly = {}, writable = {}, readOnlyRoot = false, env = {}, ...rest } = options;
  const variables = { PATH: '/usr/sbin:/usr/bin', HOME: '/root', LC_ALL: 'C.UTF-8', ...env };
  const args = [
    [readOnlyRoot ? '--ro-bind' : '--bind', root, '/'],
    ['--dev', '/dev', '--proc', '/proc', '--tmpfs', '/run'],
    Object.entries(readOnly).flatMap(([inside, host]) => ['--ro-bind', host, inside]),
    Object.entries(writable).flatMap(([inside, host]) => ['--bind', host, inside]),
    ['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-net', '--die-with-parent', '--new-session'],
    ['--cap-add', 'ALL', '--hostname', 'berth', '--chdir', '/', '--clearenv'],
    Object.entries(variables).flatMap(([name, value]) => ['--setenv', name, value]),
    ['--', ...command],
  ].flat();
  return runCommandForBytes('bwrap', args, rest);
}
