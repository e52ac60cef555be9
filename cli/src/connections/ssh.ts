// `berth ssh`: runs the local ssh client over `berth tunnel`, with the sandbox's host key already
// known.
import { spawn } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CliContext } from '../program/context.ts';
import { CliFailure } from '../output/failure.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import type { Input } from '../program/command-spec.ts';
import { knownHostsLine } from './known-host.ts';

/** Resolves with the exit code of ssh: that of the remote command, or 255. */
export async function ssh(context: CliContext, { args: [typed, ...args] }: Input): Promise<number> {
  const id = await findSandbox(context, typed);
  const { berth } = await context.connect();
  const { ssh: access } = await berth.raw.getSshAccess({ path: { sandboxId: id }, signal: context.signal });
  if (access.authorizedKeyFingerprint === null) {
    throw new CliFailure('cannot connect by ssh: the sandbox was created without an SSH key', {
      remedy: `create a sandbox with --ssh-key FILE, or use berth shell ${id}`,
    });
  }
  const folder = await mkdtemp(join(tmpdir(), 'berth-ssh-'));
  try {
    const known = join(folder, 'known_hosts');
    await writeFile(known, `${knownHostsLine(id, access.hostKey)}\n`);
    return await run(context, [...optionsOf(access.user, known, args[0] === '-A'), id, ...args]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * ssh uses the first value of an option: these override arguments and configuration. The
 * configuration forwards neither agent nor display: the sandbox could use them.
 */
function optionsOf(user: string, knownHostsFile: string, forwardsAgent: boolean): string[] {
  const options = {
    ProxyCommand: `${shellWord(process.execPath)} ${shellWord(thisProgram())} tunnel %h`,
    User: user,
    CanonicalizeHostname: 'no',
    StrictHostKeyChecking: 'yes',
    UserKnownHostsFile: `"${percentSafe(knownHostsFile)}"`,
    GlobalKnownHostsFile: '/dev/null',
    UpdateHostKeys: 'no',
    CheckHostIP: 'no',
    ForwardX11: 'no',
    ...(forwardsAgent ? {} : { ForwardAgent: 'no' }),
  };
  return Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
}

function thisProgram(): string {
  return realpathSync(process.argv[1] as string);
}

function shellWord(text: string): string {
  return `'${percentSafe(text).replaceAll("'", String.raw`'\''`)}'`;
}

/** Escapes percent signs, which start tokens of ssh. */
function percentSafe(text: string): string {
  return text.replaceAll('%', '%%');
}

async function run({ environment, signal }: CliContext, args: readonly string[]): Promise<number> {
  signal.throwIfAborted();
  const child = spawn('ssh', args, { stdio: 'inherit', env: { ...environment } });
  // Ctrl-C reaches the whole foreground group; forward a signal sent only to this process.
  const forward = (): void => void child.kill('SIGTERM');
  signal.addEventListener('abort', forward, { once: true });
  try {
    return await new Promise<number>((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (code, name) => resolve(code ?? 128 + (name === null ? 0 : constants.signals[name])));
    });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new CliFailure('the ssh client is not installed on this machine', {
      remedy: 'install it (apt install openssh-client), or use berth shell',
      cause: error,
    });
  } finally {
    signal.removeEventListener('abort', forward);
  }
}
