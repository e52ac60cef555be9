// Test host with scripted commands, file calls, streams, host keys and metrics; it forwards
// everything else to the stand-in host.
import http from 'node:http';
import type { Duplex } from 'node:stream';
import { guestExecRequest, guestRunRequest, type GuestRunRequest } from '@berth/protocol/calls/exec.ts';
import { HOST_ERRORS, type VmView } from '@berth/protocol/host.ts';
import { messageOf } from '@berth/os/errors.ts';
import { ExecRefusal } from './exec-refusal.ts';
import { ProcessGuests } from './process-guests.ts';

/**
 * Script of an exec: returns the result or throws an {@link ExecRefusal}. The signal aborts when
 * the API closes the connection.
 */
type ExecScript = (request: GuestRunRequest, signal: AbortSignal) => Promise<unknown>;

type StreamScript = (caller: Duplex) => void;

/** File call as received; `body` is the content of a write. */
export interface FileCall {
  vmId: string;
  method: string;
  verb: 'read' | 'write' | 'list' | 'stat' | 'remove' | 'move' | 'mode' | 'folder' | 'watch';
  path: string;
  /** Path and query of the call after the VM's id. */
  target: string;
  query: Readonly<Record<string, string>>;
  depth: number;
  body: Buffer;
  /** Aborts when the API closes the connection. */
  gone: AbortSignal;
}

/** Result of a file call: bytes, an object for JSON, or a thrown {@link ExecRefusal}. */
export type FileScript = (call: FileCall) => Buffer | object | Promise<Buffer | object>;

/** A call about agent sessions as received. */
export interface AgentCall {
  vmId: string;
  /** Empty: all sessions. */
  sessionId: string;
  /** Called path, such as `messages`; empty: the session itself. */
  verb: string;
  turnId: string | undefined;
  query: URLSearchParams;
  body: Record<string, unknown>;
}

/** The signal aborts when the API closes the connection. */
type AgentScript = (call: AgentCall, gone: AbortSignal) => Promise<unknown>;

/** Figures of a point of the default history. */
const IDLE = {
  cpuUsedPercent: 12.5,
  residentMib: 300,
  unsharedMib: 60,
  diskUsedMib: 20,
  networkInPerSecond: 100,
  networkOutPerSecond: 50,
};

export interface ExecFront {
  url: string;
  exec: ExecScript;
  /**
   * By default every folder is empty, every file has the same content, and every write succeeds.
   */
  files: FileScript;
  /** By default the guests of agent-guests.ts. */
  agents: AgentScript;
  /** Processes of the guests. */
  readonly processes: ProcessGuests;
  /** Takes variables of a start, or throws an {@link ExecRefusal}. */
  variables: (id: string, env: string[]) => void;
  /** Metrics of a VM, possibly async, or a thrown {@link ExecRefusal}. */
  metrics: (vmId: string) => unknown;
  /** History of a VM, or a thrown {@link ExecRefusal}. By default one point. */
  metricsHistory: (vmId: string, query: URLSearchParams) => unknown;
  /** The console of a VM, or a thrown {@link ExecRefusal}. By default empty. */
  console: (vmId: string, body: Record<string, unknown>) => unknown;
  /** The host key of a VM, or a thrown {@link ExecRefusal}. */
  sshHostKey: (vmId: string) => unknown;
  /**
   * Script of a stream into a VM. Receives the path after the VM's id; returns the handler of the
   * caller's end, or throws an {@link ExecRefusal}. The default echoes, or transfers a file as
   * {@link files} would.
   */
  stream: (vmId: string, target: string) => StreamScript | Promise<StreamScript>;
  /** Lists VMs instead of the stand-in. */
  listVms?: (() => VmView[] | Promise<VmView[]>) | undefined;
  stop(): Promise<void>;
}

/** Listens on `socketPath`; `behind` is the stand-in's socket. */
export async function startExecFront(socketPath: string, behind: string): Promise<ExecFront> {
  const front: ExecFront = {
    url: `unix:${socketPath}`,
    exec: () => Promise.reject(new ExecRefusal('vm_not_running', 'no script')),
    files: ({ verb, body }) => {
      if (verb === 'write') return { size: body.length };
      if (verb === 'remove' || verb === 'move' || verb === 'mode' || verb === 'folder') return {};
      if (verb === 'watch') return { changes: [], cursor: '0123456789abcdef.0', reset: false };
      if (verb === 'stat') return { kind: 'file', size: 9, mtimeSeconds: 1, mode: '0644' };
      return Buffer.from(verb === 'list' ? 'D\0EC' : 'a content');
    },
    agents: () => Promise.reject(new ExecRefusal('vm_not_running', 'no script')),
    processes: new ProcessGuests(),
    variables: () => undefined,
    metrics: () => {
      throw new ExecRefusal('vm_not_running', 'no script');
    },
    metricsHistory: () => ({ stepSeconds: 10, points: [{ atUnixMs: Date.now(), ...IDLE }] }),
    console: () => ({ console: { text: '', truncated: false, booted: false } }),
    sshHostKey: () => ({ publicKey: `ssh-ed25519 ${'A'.repeat(68)}` }),
    stream: (_vmId, target) =>
      /^file\/(?:stream|part)\?/.test(target) ? transferOf(target) : (caller) => void caller.pipe(caller),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
        streams.forEach((stream) => stream.destroy());
      }),
  };
  const server = http.createServer((request, response) => {
    const measured = request.method === 'GET' ? /^\/vms\/([^/]+)\/metrics$/.exec(request.url ?? '')?.[1] : undefined;
    if (measured !== undefined) {
      void answer(response, () => front.metrics(measured));
      return;
    }
    const [, past, query] = /^\/vms\/([^/]+)\/metrics\/history\?(.*)$/.exec(request.url ?? '') ?? [];
    if (past !== undefined) {
      void answer(response, () => front.metricsHistory(past, new URLSearchParams(query)));
      return;
    }
    const known = request.method === 'GET' ? /^\/vms\/([^/]+)\/ssh-host-key$/.exec(request.url ?? '')?.[1] : undefined;
    if (known !== undefined) {
      void answer(response, () => front.sshHostKey(known));
      return;
    }
    const watched = request.method === 'POST' ? /^\/vms\/([^/]+)\/console$/.exec(request.url ?? '')?.[1] : undefined;
    if (watched !== undefined) {
      void runWithBody(request, response, async (body) => front.console(watched, body));
      return;
    }
    const fileRoute = /^\/vms\/([^/]+)\/(?:files?(?:\/[a-z]+)?|folder)\?/.exec(request.url ?? '');
    if (fileRoute !== null) {
      void runFileCall(request, response, front, fileRoute[1] ?? '');
      return;
    }
    const agents = /^\/vms\/([^/]+)\/agents(?:\/([^/?]+))?(?:\/([a-z]+))?(?:\/([^/?]+))?(?:\/(void))?(?:\?(.*))?$/.exec(
      request.url ?? '',
    );
    if (agents !== null) {
      const [, vmId = '', sessionId = '', verb = '', turnId, isVoid, query = ''] = agents;
      const call = { vmId, sessionId, verb: isVoid ?? verb, turnId, query: new URLSearchParams(query) };
      void runWithBody(request, response, (body, gone) => front.agents({ ...call, body }, gone));
      return;
    }
    const ofProcesses = /^\/vms\/([^/]+)\/processes(?:\/([^/?]+))?(?:\/([a-z]+))?(?:\?(.*))?$/.exec(request.url ?? '');
    if (ofProcesses !== null) {
      const [, vmId = '', processId = '', verb = '', query = ''] = ofProcesses;
      const call = { vmId, method: request.method ?? 'GET', processId, verb, query: new URLSearchParams(query) };
      void runWithBody(request, response, (body, gone) => front.processes.answer({ ...call, body }, gone));
      return;
    }
    const variables = /^\/vms\/[^/]+\/variables\/([^/?]+)$/.exec(request.url ?? '');
    if (variables !== null) {
      void runWithBody(request, response, async ({ env }) => {
        front.variables(variables[1] ?? '', env as string[]);
        return {};
      });
      return;
    }
    const { listVms } = front;
    if (listVms !== undefined && request.method === 'GET' && request.url === '/vms') {
      void answer(response, async () => ({ vms: await listVms() }));
      return;
    }
    if (request.method !== 'POST' || !/^\/vms\/[^/]+\/(?:exec|run)$/.test(request.url ?? '')) {
      const { method, url, headers } = request;
      const onward = http.request(
        { socketPath: behind, method: method ?? 'GET', path: url ?? '/', headers },
        (answer) => {
          response.writeHead(answer.statusCode ?? 500, answer.headers);
          answer.pipe(response);
        },
      );
      onward.on('error', () => response.destroy());
      request.pipe(onward);
      return;
    }
    void runExec(request, response, front);
  });
  const streams = new Set<Duplex>();
  server.on('upgrade', (request, caller) => {
    streams.add(caller);
    caller.on('error', () => undefined);
    caller.once('close', () => streams.delete(caller));
    void answerStream(request, caller, front);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(socketPath, resolve);
  });
  return front;
}

/** Offers a content, and sends the part that the caller wants. */
export function partsOf(content: string | Uint8Array, version: string): StreamScript {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  return (caller) => {
    caller.write(`${bytes.length} ${version}\n`);
    caller.once('data', (order: Buffer) => {
      const [first = 0, length = 0] = order.toString().trim().split(' ').map(Number);
      caller.end(bytes.subarray(first, first + length));
    });
  };
}

function transferOf(target: string): StreamScript {
  if (target.startsWith('file/part')) return partsOf('a content', '1-9');
  const bytes = new URL(target, 'http://host').searchParams.get('bytes');
  if (bytes === null) return (caller) => void caller.end('9\na content');
  return (caller) => {
    let left = Number(bytes);
    const take = (chunk: Buffer): void => {
      left -= chunk.length;
      if (left === 0) caller.end(`{"size":${bytes}}\n`);
    };
    caller.on('data', take);
    if (left === 0) take(Buffer.alloc(0));
  };
}

async function answerStream(request: http.IncomingMessage, caller: Duplex, front: ExecFront): Promise<void> {
  const [, vmId = '', target = ''] = /^\/vms\/([^/]+)\/(.+)$/.exec(request.url ?? '') ?? [];
  try {
    const [, processId, query = ''] = /^processes\/([^/]+)\/stream(?:\?(.*))?$/.exec(target) ?? [];
    const script =
      processId === undefined
        ? await front.stream(vmId, target)
        : front.processes.follow(vmId, processId, new URLSearchParams(query));
    caller.write(
      `HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: ${request.headers.upgrade ?? ''}\r\n\r\n`,
    );
    script(caller);
  } catch (error) {
    const code = error instanceof ExecRefusal ? error.code : 'internal';
    const body = JSON.stringify({ error: { code, message: messageOf(error) } });
    caller.end(
      `HTTP/1.1 ${HOST_ERRORS[code]} No\r\nconnection: close\r\n` +
        `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
  }
}

const FILE_VERBS: Readonly<Record<string, FileCall['verb']>> = {
  'GET /file': 'read',
  'PUT /file': 'write',
  'GET /files': 'list',
  'GET /files/entries': 'list',
  'GET /files/changes': 'watch',
  'GET /file/stat': 'stat',
  'DELETE /file': 'remove',
  'POST /file/move': 'move',
  'POST /file/mode': 'mode',
  'POST /folder': 'folder',
};

async function runFileCall(
  request: http.IncomingMessage,
  response: http.ServerResponse,
  front: ExecFront,
  vmId: string,
): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://host');
  const chunks: Buffer[] = [];
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const route = pathname.replace(/^\/vms\/[^/]+/, '');
  const verb = FILE_VERBS[`${request.method} ${route}`] ?? 'read';
  const call = {
    vmId,
    method: request.method ?? 'GET',
    verb,
    path: searchParams.get('path') ?? '',
    target: `${route.slice(1)}?${searchParams.toString()}`,
    query: Object.fromEntries(searchParams),
    depth: Number(searchParams.get('depth')),
    body: Buffer.concat(chunks),
    gone: gone.signal,
  } as const;
  await answer(response, () => front.files(call));
}

async function runExec(request: http.IncomingMessage, response: http.ServerResponse, front: ExecFront): Promise<void> {
  const gone = new AbortController();
  response.on('close', () => {
    if (!response.writableFinished) gone.abort(new Error('the caller closed the connection'));
  });
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  try {
    const schema = request.url?.endsWith('/run') === true ? guestRunRequest : guestExecRequest;
    const body = schema.parse(JSON.parse(Buffer.concat(chunks).toString('utf8')));
    const result = await front.exec(body, gone.signal);
    await answer(response, () => result);
  } catch (error) {
    if (gone.signal.aborted) return;
    await answer(response, () => {
      throw error;
    });
  }
}

async function runWithBody(
  request: http.IncomingMessage,
  response: http.ServerResponse,
  script: (body: Record<string, unknown>, gone: AbortSignal) => Promise<unknown>,
): Promise<void> {
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = chunks.length === 0 ? {} : (JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>);
  await answer(response, () => script(body, gone.signal));
}

async function answer(response: http.ServerResponse, script: () => unknown): Promise<void> {
  const send = (status: number, body: unknown): void => {
    if (Buffer.isBuffer(body)) response.writeHead(status, { 'content-type': 'application/octet-stream' }).end(body);
    else response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
  try {
    send(200, await script());
  } catch (error) {
    const { code, errno } = error instanceof ExecRefusal ? error : { code: 'internal' as const, errno: undefined };
    send(HOST_ERRORS[code], {
      error: { code, errno, message: messageOf(error) },
    });
  }
}
