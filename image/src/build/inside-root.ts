// Runs a program inside another root file system: own mounts, processes and an empty network,
// nothing of it outlives the call or the caller.
import type { CommandOptions } from '@berth/os/command.ts';
import { runCommandForBytes } from '@berth/os/command.ts';

interface InsideRootOptions extends Omit<CommandOptions, 'env'> {
  /** Host path shown read-only at a path inside. */
  readOnly?: Record<string, string>;
  /** Host path shown writable at a path inside. */
  writable?: Record<string, string>;
  /** The root itself stays unwritten. */
  readOnlyRoot?: boolean;
  env?: Record<string, string>;
}

/** Resolves with the program's output. The environment holds nothing of the machine's. */
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
