// A local folder as the sandbox of ApiServer: runs commands of the exec route and of WebSockets
// without a terminal. Terminals, limits and users need a real VM:
// e2e/commands/cli-streams.long.test.ts.
import { spawn, type ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import type { WebSocket } from 'ws';
import type { ApiServer } from './api-server.ts';

const UNSENT_BYTES = 1_048_576;

export class LocalGuest {
  /** Working folder of commands. */
  readonly folder: string;
  /** Requested commands. */
  readonly asked: Readonly<Record<string, string | number | undefined>>[] = [];
  /** PATH of commands. */
  path = process.env['PATH'] ?? '';
  readonly running = new Set<ChildProcess>();
  /** Whether back-pressure of a client was seen. */
  heldBack = false;
  /** Received JSON frames. */
  readonly orders: unknown[] = [];

  constructor(folder: string, api: ApiServer) {
    this.folder = folder;
    api.answer = (socket, { url }) => {
      const query = new URL(url ?? '', 'http://api').searchParams;
      const command = query.get('command') ?? '';
      this.asked.push({ ...Object.fromEntries(query), command });
      this.#join(socket, this.#start(command));
    };
    const { json } = api;
    api.json = async (request, body, response) => {
      if (request.url?.endsWith('/exec') !== true) return json(request, body, response);
      const { command, timeoutSeconds } = body as { command: string; timeoutSeconds?: number };
      this.asked.push({ command, timeoutSeconds });
      const child = this.#start(command);
      response.once('close', () => this.#end(child));
      const output = { stdout: '', stderr: '' };
      for (const name of ['stdout', 'stderr'] as const)
        child[name]?.setEncoding('utf8').on('data', (text: string) => (output[name] += text));
      child.stdin?.end();
      const exitCode = await exitOf(child);
      return { exitCode, ...output, truncated: false, timedOut: false };
    };
  }

  #start(command: string): ChildProcess {
    const child = spawn('/bin/sh', ['-c', command], {
      cwd: this.folder,
      env: { PATH: this.path, HOME: this.folder },
      detached: true,
    });
    this.running.add(child);
    // Not at 'close': output that was held back when its reader left stays unread.
    child.once('exit', () => this.running.delete(child));
    return child;
  }

  /** Kills a command with all its processes. */
  #end(child: ChildProcess): void {
    if (child.exitCode !== null || child.signalCode !== null) return;
    process.kill(-(child.pid as number), 'SIGKILL');
  }

  #join(socket: WebSocket, child: ChildProcess): void {
    const { stdin, stdout, stderr } = child;
    if (stdin === null || stdout === null || stderr === null) throw new Error('it has pipes');
    stdin.on('error', () => undefined);
    for (const [number, stream] of [
      [1, stdout],
      [2, stderr],
    ] as const) {
      stream.on('data', (chunk: Buffer) => {
        socket.send(Buffer.concat([Buffer.from([number]), chunk]), { binary: true }, () => {
          if (socket.bufferedAmount <= UNSENT_BYTES / 2) stream.resume();
        });
        if (socket.bufferedAmount <= UNSENT_BYTES) return;
        this.heldBack = true;
        stream.pause();
      });
    }
    socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) {
        if (stdin.write(data) || stdin.destroyed) return;
        socket.pause();
        stdin.once('drain', () => socket.resume());
        stdin.once('close', () => socket.resume());
        return;
      }
      const order = JSON.parse(data.toString()) as { end?: true; signal?: NodeJS.Signals };
      this.orders.push(order);
      if (order.end === true) stdin.end();
      if (order.signal !== undefined) process.kill(-(child.pid as number), order.signal);
    });
    socket.once('close', () => this.#end(child));
    void exitOf(child).then((exit) => {
      socket.send(JSON.stringify({ exit }));
      socket.close(1000);
    });
  }
}

function exitOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    child.once('close', (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
  });
}
