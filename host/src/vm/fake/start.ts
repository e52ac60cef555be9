// Starts a fake VM's guest daemon as a process that outlives this one, and waits until it listens.
import { spawn, type ChildProcess } from 'node:child_process';
import { open } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { readIfPresent } from '@berth/os/durable-file.ts';
import { DriverError, type ModelPlace, type RunningVm } from '../driver.ts';
import { boundedMessageOf } from '../host-error.ts';
import { readProcess } from '@berth/os/process-identity.ts';
import type { Jail } from './jail.ts';

const START_DEADLINE_MS = 20_000;
const POLL_MS = 5;
const LOG_SHOWN_BYTES = 2_000;

/**
 * The model gateway listens on the guest daemon's port, at an address that nothing else uses: the
 * place is the same after a restart of the host daemon.
 */
export function fakeModels(port: number): ModelPlace {
  const address = '127.0.0.2';
  return { listen: { address, port }, url: `http://${address}:${port}` };
}

/**
 * Rejects with the signal's reason, or with {@link DriverError} quoting the daemon's output;
 * processes may remain then.
 */
export async function startGuestDaemon(jail: Jail, signal: AbortSignal): Promise<RunningVm> {
  return waitUntilListening(jail, await start(jail), signal);
}

/** Redirects all output to files, because the process outlives this daemon. */
async function start(jail: Jail): Promise<ChildProcess> {
  const log = await open(jail.logFile, 'a', 0o600);
  try {
    const info = await open(jail.infoFile, 'w', 0o600);
    try {
      const [program = '', ...args] = jail.argv;
      const child = spawn(program, args, { detached: true, stdio: ['ignore', log.fd, log.fd, info.fd], cwd: '/' });
      child.unref();
      return child;
    } finally {
      await info.close();
    }
  } finally {
    await log.close();
  }
}

async function waitUntilListening(jail: Jail, child: ChildProcess, signal: AbortSignal): Promise<RunningVm> {
  let failure: string | undefined;
  child.once('error', (error) => (failure = boundedMessageOf(error)));
  child.once('exit', (code, name) => (failure = `it ended with ${name ?? `exit code ${code}`}`));
  const deadline = performance.now() + START_DEADLINE_MS;
  for (;;) {
    const port = Number((await readIfThere(jail.portFile)).trim());
    if (port > 0) {
      const process = await readProcess(childPid(await readIfThere(jail.infoFile)));
      if (process !== null) return { process, guest: { address: '127.0.0.1', port }, models: fakeModels(port) };
    }
    signal.throwIfAborted();
    if (performance.now() > deadline) failure ??= `it did not listen within ${START_DEADLINE_MS / 1_000} s`;

    if (failure !== undefined) {
      const log = (await readIfThere(jail.logFile)).slice(-LOG_SHOWN_BYTES).trim();
      throw new DriverError(
        `starting the guest daemon as a local process: ${failure}${log === '' ? '' : `; it wrote: ${log}`}`,
      );
    }
    await delay(POLL_MS);
  }
}

/** The pid from bwrap's info file; 0 while that is incomplete. */
function childPid(info: string): number {
  return Number(/"child-pid": (\d+)/.exec(info)?.[1] ?? 0);
}

async function readIfThere(path: string): Promise<string> {
  return (await readIfPresent(path)) ?? '';
}
