// Starts a gateway in its confinement, and starts it again when it exits: the guest gateway, or the
// model gateway.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { serviceFilter } from '@berth/os/confinement/service-filter.ts';
import { SYSTEM_PATH } from '@berth/os/system-path.ts';
import type { Logger } from 'pino';

const CHECKOUT = fileURLToPath(new URL('../../..', import.meta.url));
const FILTER_FD = 3;
const HEAP_MIB = 256;
/** Limit of private memory, in bytes: the heap, and buffers outside it. */
const DATA_BYTES = 1_024 * 1_048_576;
/** Ended before the daemons when memory runs out, and after every VM. */
const OOM_SCORE = '500';
const RESTART_PAUSE_MS = 100;
const MESSAGES_BYTES = 4_096;

/** A process that parses what guests send. */
interface GatewayProgram {
  name: string;
  /** Path inside its mount namespace. */
  main: string;
  /** Files of the host that it sees. */
  files: readonly string[];
  /** May listen below port 1024; its only privilege. */
  lowPorts: boolean;
}
const GUEST_GATEWAY: GatewayProgram = {
  name: 'guest gateway',
  main: '/app/host/src/gateway/main.ts',
  files: [],
  lowPorts: false,
};
/** Resolves the names of the endpoints as the host does. */
export const MODEL_GATEWAY: GatewayProgram = {
  name: 'model gateway',
  main: '/app/host/src/model-gateway/main.ts',
  files: ['/etc/resolv.conf', '/etc/hosts', '/etc/nsswitch.conf'],
  lowPorts: true,
};

interface Started {
  /** Why it exited. */
  exited: Promise<string>;
}

export class GatewayProcess {
  readonly #folder: string;
  readonly #uid: number;
  readonly #log: Logger;
  readonly #program: GatewayProgram;
  readonly #serving: (socket: string) => Promise<void>;
  readonly #stopped = new AbortController();
  #ready = Promise.withResolvers<string>();
  /** Socket of the process that serves; null between two processes. */
  #socket: string | null = null;
  #starts = 0;
  #child: ChildProcess | null = null;
  #running: Promise<void> = Promise.resolve();

  /**
   * `folder`: a private folder of the host daemon, for the socket. `serving` prepares each process
   * before it counts as ready.
   */
  constructor(
    folder: string,
    uid: number,
    log: Logger,
    program: GatewayProgram = GUEST_GATEWAY,
    serving: (socket: string) => Promise<void> = () => Promise.resolve(),
  ) {
    this.#folder = folder;
    this.#uid = uid;
    this.#log = log;
    this.#program = program;
    this.#serving = serving;
    this.#ready.promise.catch(() => undefined);
  }

  /** Process id on the host; null between two processes. For tests. */
  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** Resolves when the first process serves. Rejects if it cannot start. */
  async start(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    if (process.getuid?.() === 0) await chown(this.#folder, this.#uid, this.#uid);
    const first = await this.#run();
    this.#running = this.#keepRunning(first);
  }

  /** Called after a refused connection: the process has died, which its exit may show later. */
  refused(socket: string): void {
    if (socket !== this.#socket) return;
    this.#socket = null;
    this.#ready = Promise.withResolvers();
    this.#ready.promise.catch(() => undefined);
    this.#child?.kill('SIGKILL');
  }

  async ready(signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    const gone = Promise.withResolvers<never>();
    gone.promise.catch(() => undefined);
    const onAbort = (): void => gone.reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      return await Promise.race([this.#ready.promise, gone.promise]);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** Ends the process; open streams break. */
  async close(): Promise<void> {
    this.#stopped.abort();
    this.#child?.kill('SIGKILL');
    await this.#running;
  }

  async #keepRunning(first: Started): Promise<void> {
    let { exited } = first;
    for (;;) {
      const why = await exited;
      await rm(join(this.#folder, `socket-${this.#starts}`), { force: true });
      this.#child = null;
      if (this.#socket !== null) this.refused(this.#socket);
      if (this.#stopped.signal.aborted) return;
      this.#log.error({ why }, `the ${this.#program.name} exited; starting it again`);
      for (;;) {
        try {
          ({ exited } = await this.#run());
          break;
        } catch (error) {
          this.#log.error({ err: error }, `the ${this.#program.name} did not start`);
          await delay(RESTART_PAUSE_MS, undefined, { signal: this.#stopped.signal }).catch(() => undefined);
          if (this.#stopped.signal.aborted) return;
        }
      }
    }
  }

  /** Starts a process; resolves once it serves. */
  async #run(): Promise<Started> {
    this.#starts += 1;
    const name = `socket-${this.#starts}`;
    const socket = join(this.#folder, name);
    const [program = '', ...args] = gatewayArgv(this.#program, name, this.#folder, this.#uid, process.getuid?.() === 0);
    const child = spawn(program, args, {
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      env: { PATH: SYSTEM_PATH },
      cwd: '/',
    });
    const filter = child.stdio[FILTER_FD] as NodeJS.WritableStream;
    filter.on('error', () => undefined).end(serviceFilter(process.arch));
    let messages = '';
    child.stderr?.on('data', (chunk: Buffer) => (messages = (messages + chunk.toString()).slice(-MESSAGES_BYTES)));
    const exited = Promise.withResolvers<string>();
    child.once('error', (error) => exited.resolve(error.message));
    child.once('exit', (code, signal) => exited.resolve(`${signal ?? `exit code ${code}`}; ${messages.trim()}`));
    const served = await Promise.race([
      once(child.stdout as NodeJS.ReadableStream, 'data').then(() => true),
      exited.promise.then(() => false),
    ]);
    child.stdout?.resume();
    if (!served) throw new Error(`the ${this.#program.name}: ${await exited.promise}`);
    if (this.#stopped.signal.aborted) child.kill('SIGKILL');
    await this.#serving(socket).catch((error: unknown) => {
      child.kill('SIGKILL');
      throw error;
    });
    this.#child = child;
    this.#socket = socket;
    this.#ready.resolve(socket);
    return { exited: exited.promise };
  }
}

/**
 * Argv of the gateway: bwrap shows it the program and the folder of its socket, setpriv drops the
 * privileges. Unprivileged daemons, which have the fake driver only, keep their user.
 */
function gatewayArgv(
  { main, files, lowPorts }: GatewayProgram,
  name: string,
  folder: string,
  uid: number,
  privileged: boolean,
): string[] {
  const identity = ['--reuid', String(uid), '--regid', String(uid), '--clear-groups'];
  const kept = lowPorts ? '-all,+net_bind_service' : '-all';
  const rights = ['--bounding-set', kept, '--inh-caps', kept, '--ambient-caps', kept, '--no-new-privs'];
  return [
    [
      'choom',
      '-n',
      OOM_SCORE,
      '--',
      'setpriv',
      '--pdeathsig',
      'KILL',
      '--',
      'bwrap',
      '--die-with-parent',
      '--unshare-pid',
      '--unshare-ipc',
    ],
    ['--unshare-uts', '--unshare-cgroup-try', '--new-session', '--seccomp', String(FILTER_FD), '--clearenv'],
    privileged ? [] : ['--unshare-user'],
    ['--setenv', 'PATH', SYSTEM_PATH, '--ro-bind', '/usr', '/usr', '--symlink', 'usr/bin', '/bin'],
    ['--symlink', 'usr/lib', '/lib', '--symlink', 'usr/lib64', '/lib64', '--proc', '/proc', '--dev', '/dev'],
    // Parents of mounts would have closed permissions.
    files.length === 0 ? [] : ['--perms', '0755', '--dir', '/etc'],
    files.flatMap((file) => ['--ro-bind-try', file, file]),
    ['--ro-bind', CHECKOUT, '/app', '--ro-bind', process.execPath, '/node', '--bind', folder, '/gateway'],
    ['--remount-ro', '/', '--chdir', '/', '--', 'prlimit', `--data=${DATA_BYTES}`, '--core=0', '--'],
    privileged ? ['setpriv', ...identity, ...rights, '--'] : [],
    ['/node', `--max-old-space-size=${HEAP_MIB}`, main, `/gateway/${name}`],
  ].flat();
}
