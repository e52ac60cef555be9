// Starts a gateway in its confinement, starts it again with back-off when it exits, and connects to
// it: the guest gateway, or the model gateway.
//
//   starting --serves--> serving --exits--> pausing --> starting ...        close(): any state --> closed
//       └── exits ──> pausing
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdir, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { serviceFilter } from '@berth/os/confinement/service-filter.ts';
import { hasCode } from '@berth/os/errors.ts';
import { SYSTEM_PATH } from '@berth/os/system-path.ts';
import type { Logger } from 'pino';

const CHECKOUT = fileURLToPath(new URL('../../..', import.meta.url));
const FILTER_FD = 3;
const HEAP_MIB = 256;
/** Limit of private memory, in bytes: the heap, and buffers outside it. */
const DATA_BYTES = 1_024 * 1_048_576;
/** Ended before the daemons when memory runs out, and after every VM. */
const OOM_SCORE = '500';
/** Pauses before the starts after an exit: none, then doubling from `first`. */
const PAUSES_MS = { first: 100, longest: 10_000 } as const;
/** After this time in service, the next start has no pause. */
const SETTLED_MS = 30_000;
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

/** Time as the restarts see it. */
interface GatewayClock {
  nowMs(): number;
  /** Resolves also when the signal aborts. */
  pause(ms: number, signal: AbortSignal): Promise<void>;
}
const CLOCK: GatewayClock = {
  nowMs: () => performance.now(),
  pause: (ms, signal) => delay(ms, undefined, { signal }).catch(() => undefined),
};

interface GatewayOptions {
  /** A private folder of the host daemon, for the socket. */
  folder: string;
  uid: number;
  log: Logger;
  program?: GatewayProgram;
  /** Prepares each process before it counts as ready. */
  serving?: (socket: string) => Promise<void>;
  clock?: GatewayClock;
}

interface Started {
  /** Why it exited. */
  exited: Promise<string>;
}

/** Connects to a gateway. Readers learn of a failure by the connection's end. */
export async function openGateway(path: string): Promise<Socket> {
  const connection = connect({ path, allowHalfOpen: true });
  await once(connection, 'connect');
  return connection.on('error', () => undefined);
}

export class GatewayProcess {
  readonly #options: Required<GatewayOptions>;
  readonly #stopped = new AbortController();
  #ready = Promise.withResolvers<string>();
  /** Socket of the process that serves; null between two processes. */
  #socket: string | null = null;
  #starts = 0;
  #child: ChildProcess | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(options: GatewayOptions) {
    this.#options = { program: GUEST_GATEWAY, serving: () => Promise.resolve(), clock: CLOCK, ...options };
    this.#ready.promise.catch(() => undefined);
  }

  /** Process id on the host; null between two processes. For tests. */
  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** Resolves when the first process serves. Rejects if it cannot start. */
  async start(): Promise<void> {
    await this.#makeFolder();
    const first = await this.#run();
    this.#running = this.#keepRunning(() => Promise.resolve(first));
  }

  /** Starts processes until one serves. Rejects if it cannot make the folder of their sockets. */
  async begin(): Promise<void> {
    await this.#makeFolder();
    this.#running = this.#keepRunning(() => this.#run());
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

  /** Connects to the process that serves; waits for the next one if it has died. */
  async connect(signal: AbortSignal): Promise<Socket> {
    for (;;) {
      const path = await this.ready(signal);
      try {
        return await openGateway(path);
      } catch (error) {
        if (!hasCode(error, 'ECONNREFUSED', 'ENOENT')) throw error;
        this.refused(path);
      }
    }
  }

  /** Ends the process; open streams break. */
  async close(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
  }

  async #makeFolder(): Promise<void> {
    const { folder, uid } = this.#options;
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true, mode: 0o700 });
    if (process.getuid?.() === 0) await chown(folder, uid, uid);
  }

  /** Never rejects. The log has one entry for each start that ended. */
  async #keepRunning(first: () => Promise<Started>): Promise<void> {
    const { log, clock, program, folder } = this.#options;
    const { signal } = this.#stopped;
    let pauseMs = 0;
    for (let start = first; ; start = () => this.#run()) {
      try {
        const { exited } = await start();
        const servesSinceMs = clock.nowMs();
        const why = await exited;
        if (clock.nowMs() - servesSinceMs >= SETTLED_MS) pauseMs = 0;
        if (!signal.aborted) log.error({ why, pauseMs }, `the ${program.name} exited; starting it again`);
      } catch (error) {
        if (!signal.aborted) log.error({ err: error, pauseMs }, `the ${program.name} did not start`);
      }
      await rm(join(folder, `socket-${this.#starts}`), { recursive: true, force: true });
      this.#child = null;
      if (this.#socket !== null) this.refused(this.#socket);
      await clock.pause(pauseMs, signal);
      if (signal.aborted) return;
      pauseMs = Math.min(Math.max(2 * pauseMs, PAUSES_MS.first), PAUSES_MS.longest);
    }
  }

  /** Starts a process; resolves once it serves. */
  async #run(): Promise<Started> {
    const { folder, uid, program, serving } = this.#options;
    this.#starts += 1;
    const name = `socket-${this.#starts}`;
    const socket = join(folder, name);
    const [file = '', ...args] = gatewayArgv(program, name, folder, uid, process.getuid?.() === 0);
    const child = spawn(file, args, {
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
    const kill = (): void => void child.kill('SIGKILL');
    const { signal } = this.#stopped;
    signal.addEventListener('abort', kill, { once: true });
    void exited.promise.then(() => signal.removeEventListener('abort', kill));
    if (signal.aborted) kill();
    const served = await Promise.race([
      once(child.stdout as NodeJS.ReadableStream, 'data').then(() => true),
      exited.promise.then(() => false),
    ]);
    child.stdout?.resume();
    if (!served) throw new Error(`the ${program.name}: ${await exited.promise}`);
    await serving(socket).catch((error: unknown) => {
      kill();
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
