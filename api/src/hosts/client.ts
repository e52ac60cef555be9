// The client of the host protocol (protocol/src/host.ts): one object per host, over a unix socket
// or TCP, with deadlines and checked answers. It knows nothing of sandboxes' rows and never retries
// a verb whose outcome is unknown, save on a pooled connection that was already closed.
import http from 'node:http';
import type { Duplex } from 'node:stream';
import type { z } from 'zod';
import {
  FILE_CALL_SECONDS,
  FILE_LIST_MAX_BYTES,
  FILE_READ_BYTES,
  fileWritten,
  type FileWritten,
} from '@berth/protocol/files.ts';
import {
  CLONE_ANSWER_MAX_BYTES,
  EXEC_ANSWER_MAX_BYTES,
  PORT_STREAM,
  TERMINAL_STREAM,
  guestCloneResult,
  guestExecResult,
  type GuestCloneResult,
  type GuestExecRequest,
  type GuestExecResult,
  terminalQueryOf,
  type TerminalAsked,
} from '@berth/protocol/guest.ts';
import {
  hostInfo,
  vmList,
  vmMetrics,
  vmSshHostKey,
  vmView,
  type HostInfo,
  type VmClone,
  type VmCreate,
  type VmMetrics,
  type VmSshHostKey,
  type VmView,
  type VmSleep,
  type VmWake,
  type VmResize,
} from '@berth/protocol/host.ts';
import { brokenOff, jsonIn } from './answer.ts';
import { HostError } from './error.ts';
import { exchange, StaleConnectionError, targetOf, type Exchanged, type Payload, type Target } from './exchange.ts';
import { openHostStream } from './stream.ts';

/**
 * Deadlines of the verbs in milliseconds. Each waits longer than its host does, an exec or clone
 * for its own timeout and this much more. A sleep writes what the guest dirtied of its memory, a
 * wake reads it back, or boots a disk.
 */
export const HOST_DEADLINES_MS = {
  read: 5_000,
  metrics: 10_000,
  create: 90_000,
  sleep: 315_000,
  wake: 195_000,
  resize: 90_000,
  destroy: 30_000,
  execMargin: 20_000,
  stream: 40_000,
  file: (FILE_CALL_SECONDS + 20) * 1_000,
} as const;

/** Longest answer read from a host, but for exec. A list of 1,000 VMs is 400 KB. */
const ANSWER_MAX_BYTES = 8 * 1024 * 1024;

export interface HostClientOptions {
  /** `unix:/path/to/socket` or `http://address:port`. */
  url: string;
  /** Bearer token of the host. */
  token: string;
}

export interface CallOptions {
  /**
   * Ends the call; it then rejects with the signal's reason. Closing the connection of an exec ends
   * its process group.
   */
  signal?: AbortSignal | undefined;
  /** Replaces the verb's own deadline, in milliseconds. */
  deadlineMs?: number | undefined;
}

interface Request extends CallOptions {
  method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  path: string;
  body?: unknown;
  /** Sent as they are, instead of `body`. */
  bytes?: Buffer;
  deadlineMs: number;
  maxBytes?: number;
  agent: http.Agent;
}

interface JsonRequest<S extends z.ZodType> extends Request {
  schema: S;
}

/**
 * Calls one host. Every method rejects with {@link HostError}, or with the reason of the caller's
 * signal.
 */
export class HostClient {
  readonly url: string;
  readonly #token: string;
  readonly #target: Target;
  readonly #pooled = new http.Agent({ keepAlive: true, maxFreeSockets: 16, timeout: 0 });
  /**
   * An exec is not repeatable, so it never meets a pooled connection that its host is closing at
   * that moment.
   */
  readonly #single = new http.Agent({ keepAlive: false });

  constructor(options: HostClientOptions) {
    this.url = options.url;
    this.#token = options.token;
    this.#target = targetOf(options.url);
  }

  /** Who the host is, what it can hold and what of it is taken. */
  info(options: CallOptions = {}): Promise<HostInfo> {
    return this.#call(this.#verb('GET', '/host', hostInfo, HOST_DEADLINES_MS.read, options));
  }

  /** Every VM the host has on record, without destroyed ones. */
  async listVms(options: CallOptions = {}): Promise<VmView[]> {
    const answer = await this.#call(this.#verb('GET', '/vms', vmList, HOST_DEADLINES_MS.read, options));
    return answer.vms;
  }

  /** Resolves when the VM runs, whether this call or an earlier one of the same epoch made it. */
  createVm(id: string, create: VmCreate, options: CallOptions = {}): Promise<VmView> {
    const path = `/vms/${encodeURIComponent(id)}`;
    return this.#call({ ...this.#verb('PUT', path, vmView, HOST_DEADLINES_MS.create, options), body: create });
  }

  /** Resolves when the VM is `asleep`: captured, durable, its machine released. */
  sleepVm(id: string, sleep: VmSleep, options: CallOptions = {}): Promise<VmView> {
    return this.#post(id, 'sleep', sleep, HOST_DEADLINES_MS.sleep, options);
  }

  /**
   * Resolves when the VM runs, from its snapshot or by a boot of its disk; `woke` of the answer
   * says which, `spec` what it has.
   */
  wakeVm(id: string, wake: VmWake, options: CallOptions = {}): Promise<VmView> {
    return this.#post(id, 'wake', wake, HOST_DEADLINES_MS.wake, options);
  }

  /** Resolves when the guest was verified to have grown; `spec` of the answer is what it has. */
  resizeVm(id: string, resize: VmResize, options: CallOptions = {}): Promise<VmView> {
    return this.#post(id, 'resize', resize, HOST_DEADLINES_MS.resize, options);
  }

  /** Resolves when nothing of the VM is left, and the host remembers the epoch. */
  destroyVm(id: string, epoch: number, options: CallOptions = {}): Promise<VmView> {
    const path = `/vms/${encodeURIComponent(id)}?epoch=${epoch}`;
    return this.#call(this.#verb('DELETE', path, vmView, HOST_DEADLINES_MS.destroy, options));
  }

  /**
   * What the guest says of itself and what its host sees of it. The guest's numbers are of the
   * right kind and no more: they are not to be trusted.
   */
  metrics(id: string, options: CallOptions = {}): Promise<VmMetrics> {
    const path = `/vms/${encodeURIComponent(id)}/metrics`;
    return this.#call(this.#verb('GET', path, vmMetrics, HOST_DEADLINES_MS.metrics, options));
  }

  /** What the host gave the VM when it was made; also of one that sleeps. */
  sshHostKey(id: string, options: CallOptions = {}): Promise<VmSshHostKey> {
    const path = `/vms/${encodeURIComponent(id)}/ssh-host-key`;
    return this.#call(this.#verb('GET', path, vmSshHostKey, HOST_DEADLINES_MS.read, options));
  }

  /**
   * Runs one command in the guest. The host answers headers and spaces at once and the result in
   * the end.
   */
  exec(id: string, request: GuestExecRequest, options: CallOptions = {}): Promise<GuestExecResult> {
    const path = `/vms/${encodeURIComponent(id)}/exec`;
    const deadlineMs = request.timeoutSeconds * 1_000 + HOST_DEADLINES_MS.execMargin;
    return this.#call({
      ...this.#verb('POST', path, guestExecResult, deadlineMs, options),
      body: request,
      maxBytes: EXEC_ANSWER_MAX_BYTES,
      agent: this.#single,
    });
  }

  /**
   * Clones a repository in the guest, or finds it cloned. Answered as an exec is; closing the
   * connection leaves the clone to whoever asks again soon.
   */
  clone(id: string, request: VmClone, options: CallOptions = {}): Promise<GuestCloneResult> {
    const path = `/vms/${encodeURIComponent(id)}/clone`;
    const deadlineMs = request.timeoutSeconds * 1_000 + HOST_DEADLINES_MS.execMargin;
    return this.#call({
      ...this.#verb('POST', path, guestCloneResult, deadlineMs, options),
      body: request,
      maxBytes: CLONE_ANSWER_MAX_BYTES + request.timeoutSeconds,
      agent: this.#single,
    });
  }

  /**
   * A raw stream to a TCP port of the guest. It can be half closed (`allowHalfOpen`), is the
   * caller's to destroy, and is closed by the host when the VM stops running. Rejects with
   * `port_refused` when nothing listens there. The signal ends the opening alone.
   */
  openPort(id: string, port: number, options: CallOptions = {}): Promise<Duplex> {
    return this.#openStream(id, `ports/${port}`, PORT_STREAM, options);
  }

  /**
   * A new terminal, or command, of the guest, in the frames of protocol/src/terminal-frames.ts; as
   * {@link openPort} otherwise.
   */
  openTerminal(id: string, asked: TerminalAsked, options: CallOptions = {}): Promise<Duplex> {
    return this.#openStream(id, `terminal?${terminalQueryOf(asked)}`, TERMINAL_STREAM, options);
  }

  /** The bytes of a regular file of at most 8 MiB. Refused with one of `FILE_ERRORS`. */
  readFile(id: string, path: string, options: CallOptions = {}): Promise<Buffer> {
    return this.#bytes(
      `/vms/${encodeURIComponent(id)}/file?${new URLSearchParams({ path }).toString()}`,
      FILE_READ_BYTES,
      options,
    );
  }

  /**
   * A listing of `depth` levels, as the guest sends it: `parseListing` of the protocol reads it.
   * Refused as {@link readFile} is.
   */
  listFiles(id: string, path: string, depth: number, options: CallOptions = {}): Promise<Buffer> {
    const query = new URLSearchParams({ path, depth: String(depth) });
    return this.#bytes(`/vms/${encodeURIComponent(id)}/files?${query.toString()}`, FILE_LIST_MAX_BYTES, options);
  }

  /** Writes a file whole or not at all. Refused as {@link readFile} is. */
  writeFile(id: string, path: string, bytes: Buffer, options: CallOptions = {}): Promise<FileWritten> {
    const where = `/vms/${encodeURIComponent(id)}/file?${new URLSearchParams({ path }).toString()}`;
    // Not repeated: what came in between would be written over.
    return this.#call({
      ...this.#verb('PUT', where, fileWritten, HOST_DEADLINES_MS.file, options),
      bytes,
      agent: this.#single,
    });
  }

  /** Closes idle connections; calls under way end with `host_unreachable`. */
  close(): void {
    this.#pooled.destroy();
    this.#single.destroy();
  }

  #openStream(
    id: string,
    target: string,
    protocol: string,
    { deadlineMs = HOST_DEADLINES_MS.stream, signal }: CallOptions,
  ): Promise<Duplex> {
    const path = `/vms/${encodeURIComponent(id)}/${target}`;
    return openHostStream({ target: this.#target, token: this.#token, path, protocol, deadlineMs, signal });
  }

  #post(
    id: string,
    verb: 'sleep' | 'wake' | 'resize',
    body: unknown,
    deadlineMs: number,
    options: CallOptions,
  ): Promise<VmView> {
    const path = `/vms/${encodeURIComponent(id)}/${verb}`;
    return this.#call({ ...this.#verb('POST', path, vmView, deadlineMs, options), body });
  }

  async #bytes(path: string, maxBytes: number, options: CallOptions): Promise<Buffer> {
    const request = this.#request('GET', path, HOST_DEADLINES_MS.file, options);
    const answer = await this.#exchange({ ...request, maxBytes });
    // Throws: it is no success.
    if (answer.status !== 200) jsonIn(answer, this.#where(request));
    if (!answer.whole) throw brokenOff(this.#where(request));
    return answer.body;
  }

  #verb<S extends z.ZodType>(
    method: Request['method'],
    path: string,
    schema: S,
    deadlineMs: number,
    options: CallOptions,
  ): JsonRequest<S> {
    return { ...this.#request(method, path, deadlineMs, options), schema };
  }

  #request(method: Request['method'], path: string, deadlineMs: number, options: CallOptions): Request {
    return { method, path, agent: this.#pooled, deadlineMs: options.deadlineMs ?? deadlineMs, signal: options.signal };
  }

  async #call<S extends z.ZodType>(request: JsonRequest<S>): Promise<z.output<S>> {
    const where = this.#where(request);
    const parsed = request.schema.safeParse(jsonIn(await this.#exchange(request), where));
    if (parsed.success) return parsed.data;
    const issue = parsed.error.issues[0];
    throw new HostError(
      'invalid_answer',
      `${where}: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'unknown fault'}`,
    );
  }

  async #exchange(request: Request): Promise<Exchanged> {
    const startedAt = performance.now();
    const { method, path, signal, agent, maxBytes = ANSWER_MAX_BYTES } = request;
    const attempt = {
      target: this.#target,
      token: this.#token,
      method,
      path,
      payload: payloadOf(request),
      maxBytes,
      where: this.#where(request),
    };
    try {
      return await exchange({ ...attempt, agent, deadlineMs: request.deadlineMs }, signal);
    } catch (error) {
      // The host closed an idle connection while the request was on its way: nothing of it was
      // read, so once more on a fresh one.
      if (!(error instanceof StaleConnectionError)) throw error;
      const deadlineMs = Math.max(1, request.deadlineMs - (performance.now() - startedAt));
      return await exchange({ ...attempt, agent: this.#single, deadlineMs }, signal);
    }
  }

  #where({ method, path }: Request): string {
    return `${method} ${path.replace(/\?.*/s, '')} at ${this.url}`;
  }
}

function payloadOf({ body, bytes }: Request): Payload | undefined {
  if (bytes !== undefined) return { type: 'application/octet-stream', bytes };
  return body === undefined ? undefined : { type: 'application/json', bytes: Buffer.from(JSON.stringify(body)) };
}
