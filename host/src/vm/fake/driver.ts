// The VM driver without a VM: the real guest daemon as a local process. For tests, which get every behaviour of a host without an emulator's
// time. It isolates nothing and must never run what a stranger sent.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { open, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { bundleGuestDaemon } from '@berth/guest/bundle.ts';
import { z } from 'zod';
import { DriverError, type CreateVm, type DriverState, type RunningVm, type VmDriver, type VmProcess } from '../driver.ts';
import { endProcess, isSame, processExited, readProcess } from '../process.ts';
import { findMarked, writeMark, type Mark } from './find.ts';
import { makeJail, type Jail } from './jail.ts';

const START_DEADLINE_MS = 20_000;
const PROBE_DEADLINE_MS = 5_000;
const POLL_MS = 5;
const LOG_SHOWN_BYTES = 2_000;

/** What the driver has on disk of a VM that runs. */
const runningState = z.object({
  process: z.object({ pid: z.int(), startTicks: z.string(), bootId: z.string() }),
  guest: z.object({ address: z.string(), port: z.int() }),
});

const run = promisify(execFile);

export class FakeDriver implements VmDriver {
  readonly name = 'fake';
  readonly accelerator = 'none';
  readonly capabilities = { isolates: false, network: false, hotplug: false };
  readonly #instanceId: string;
  #guestDaemon: Uint8Array | undefined;

  /** `instanceId` names the installation among several on one machine. */
  constructor(instanceId: string) {
    this.#instanceId = instanceId;
  }

  async prepare(): Promise<void> {
    for (const program of ['bwrap', 'setpriv']) {
      await run(program, ['--version'], { timeout: PROBE_DEADLINE_MS }).catch((error: unknown) => {
        throw new DriverError(`the fake driver needs the program ${program}: ${messageOf(error)}`, { cause: error });
      });
    }
    this.#guestDaemon = (await bundleGuestDaemon()).code;
  }

  async create(vm: CreateVm): Promise<RunningVm> {
    const { id, folder, signal } = vm;
    if (this.#guestDaemon === undefined) {
      throw new DriverError('the fake driver was not prepared');
    }
    const mark: Mark = { instanceId: this.#instanceId, vmId: id, folder };
    signal.throwIfAborted();
    // Whatever is started from here on is found again by its mark.
    await vm.saveState({ mark: writeMark(mark) });
    const jail = await makeJail(folder, writeMark(mark), this.#guestDaemon);
    signal.throwIfAborted();
    const child = await start(jail);
    const running = await waitUntilListening(jail, child, signal);
    await vm.saveState({ mark: writeMark(mark), ...running });
    return running;
  }

  async recover(_folder: string, state: DriverState): Promise<RunningVm | null> {
    const parsed = runningState.safeParse(state);
    return parsed.success && (await isSame(parsed.data.process)) ? parsed.data : null;
  }

  async exited(process: VmProcess, signal: AbortSignal): Promise<string> {
    await processExited(process, signal);
    return signal.aborted ? 'no longer watched' : `the guest daemon's process ${process.pid} has ended`;
  }

  async destroy(folder: string): Promise<void> {
    await endMarked((mark) => mark.folder === folder);
  }

  async reapOrphans(known: ReadonlySet<string>): Promise<string[]> {
    const ended = await endMarked((mark) => mark.instanceId === this.#instanceId && !known.has(mark.vmId));
    return ended.map(({ mark, process }) => `process ${process.pid} of the fake VM ${mark.vmId}`);
  }

  async close(): Promise<void> {
    this.#guestDaemon = undefined;
  }
}

/** Ends every process with such a mark. The one outside may have been about to start the one inside, so it looks again until there is none. */
async function endMarked(wanted: (mark: Mark) => boolean): ReturnType<typeof findMarked> {
  const ended: Awaited<ReturnType<typeof findMarked>> = [];
  for (;;) {
    const found = await findMarked(wanted);
    if (found.length === 0) {
      return ended;
    }
    await Promise.all(found.map(({ process }) => endProcess(process)));
    ended.push(...found);
  }
}

/** Starts it with files of its own for everything it writes: it outlives this daemon. */
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
  child.once('error', (error) => (failure = messageOf(error)));
  child.once('exit', (code, name) => (failure = `it ended with ${name ?? `exit code ${code}`}`));
  const deadline = performance.now() + START_DEADLINE_MS;
  for (;;) {
    const port = Number((await readIfThere(jail.portFile)).trim());
    if (port > 0) {
      const process = await readProcess(childPid(await readIfThere(jail.infoFile)));
      if (process !== null) {
        return { process, guest: { address: '127.0.0.1', port } };
      }
    }
    signal.throwIfAborted();
    if (performance.now() > deadline) {
      failure ??= `it did not listen within ${START_DEADLINE_MS / 1_000} s`;
    }
    if (failure !== undefined) {
      const log = (await readIfThere(jail.logFile)).slice(-LOG_SHOWN_BYTES).trim();
      throw new DriverError(`starting the guest daemon as a local process: ${failure}${log === '' ? '' : `; it wrote: ${log}`}`);
    }
    await delay(POLL_MS);
  }
}

/** From what bwrap writes to its info file; 0 while that is not whole. */
function childPid(info: string): number {
  return Number(/"child-pid": (\d+)/.exec(info)?.[1] ?? 0);
}

async function readIfThere(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
      return '';
    }
    throw error;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
