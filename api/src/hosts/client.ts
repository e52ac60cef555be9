// The client of the host protocol (protocol/src/host.ts): one object per host, over a unix socket or TCP, with deadlines and checked answers.
// It knows nothing of sandboxes' rows and never retries a verb whose outcome is unknown, save on a pooled connection that was already closed.
import http from 'node:http';
import type { z } from 'zod';
import {
  CLONE_ANSWER_MAX_BYTES,
  EXEC_ANSWER_MAX_BYTES,
  guestCloneResult,
  guestExecResult,
  type GuestCloneResult,
  type GuestExecRequest,
  type GuestExecResult,
} from '@berth/protocol/guest.ts';
import {
  hostError,
  hostInfo,
  vmList,
  vmMetrics,
  vmView,
  type HostInfo,
  type VmClone,
  type VmCreate,
  type VmMetrics,
  type VmView,
  type VmSleep,
  type VmWake,
  type VmResize,
} from '@berth/protocol/host.ts';
import { HostError } from './error.ts';

/**
 * Deadlines of the verbs in milliseconds. Each waits longer than its host does, an exec or clone for its own timeout and this much more. A sleep writes what the guest
 * dirtied of its memory, a wake reads it back, or boots a disk.
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
  /** Ends the call; it then rejects with the signal's reason. Closing the connection of an exec ends its process group. */
  signal?: AbortSignal | undefined;
  /** Replaces the verb's own deadline, in milliseconds. */
  deadlineMs?: number | undefined;
}

interface Request<S extends z.ZodType> extends CallOptions {
  method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  path: string;
  body?: unknown;
  schema: S;
  deadlineMs: number;
  maxBytes?: number;
  agent: http.Agent;
}

/** Calls one host. Every method rejects with {@link HostError}, or with the reason of the caller's signal. */
export class HostClient {
  readonly url: string;
  readonly #token: string;
  readonly #target: { socketPath: string } | { host: string; port: number };
  readonly #pooled = new http.Agent({ keepAlive: true, maxFreeSockets: 16, timeout: 0 });
  /** An exec is not repeatable, so it never meets a pooled connection that its host is closing at that moment. */
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

  /** Resolves when the VM runs, from its snapshot or by a boot of its disk; `woke` of the answer says which, `spec` what it has. */
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

  /** What the guest says of itself and what its host sees of it. The guest's numbers are of the right kind and no more: they are not to be trusted. */
  metrics(id: string, options: CallOptions = {}): Promise<VmMetrics> {
    const path = `/vms/${encodeURIComponent(id)}/metrics`;
    return this.#call(this.#verb('GET', path, vmMetrics, HOST_DEADLINES_MS.metrics, options));
  }

  /** Runs one command in the guest. The host answers headers and spaces at once and the result in the end. */
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

  /** Clones a repository in the guest, or finds it cloned. Answered as an exec is; closing the connection leaves the clone to whoever asks again soon. */
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

  /** Closes idle connections; calls under way end with `host_unreachable`. */
  close(): void {
    this.#pooled.destroy();
    this.#single.destroy();
  }

  #post(id: string, verb: 'sleep' | 'wake' | 'resize', body: unknown, deadlineMs: number, options: CallOptions): Promise<VmView> {
    const path = `/vms/${encodeURIComponent(id)}/${verb}`;
    return this.#call({ ...this.#verb('POST', path, vmView, deadlineMs, options), body });
  }

  #verb<S extends z.ZodType>(method: Request<S>['method'], path: string, schema: S, deadlineMs: number, options: CallOptions): Request<S> {
    return { method, path, schema, agent: this.#pooled, deadlineMs: options.deadlineMs ?? deadlineMs, signal: options.signal };
  }

  async #call<S extends z.ZodType>(request: Request<S>): Promise<z.output<S>> {
    const startedAt = performance.now();
    try {
      return await this.#attempt(request, request.deadlineMs);
    } catch (error) {
      // The host closed an idle connection while the request was on its way: nothing of it was read, so once more on a fresh one.
      if (!(error instanceof StaleConnectionError)) throw error;
      const leftMs = Math.max(1, request.deadlineMs - (performance.now() - startedAt));
      return await this.#attempt({ ...request, agent: this.#single }, leftMs);
    }
  }

  #attempt<S extends z.ZodType>(request: Request<S>, deadlineMs: number): Promise<z.output<S>> {
    const { signal, method, path } = request;
    if (signal?.aborted) return Promise.reject(asError(signal.reason));
    const payload = request.body === undefined ? undefined : Buffer.from(JSON.stringify(request.body));
    const where = `${method} ${path.replace(/\?.*/, '')} at ${this.url}`;
    return new Promise((resolve, reject) => {
      const outgoing = http.request({
        ...this.#target,
        method,
        path,
        agent: request.agent,
        headers: {
          authorization: `Bearer ${this.#token}`,
          ...(payload === undefined ? {} : { 'content-type': 'application/json', 'content-length': payload.byteLength }),
        },
      });
      let answered = false;
      const finish = (error: Error | undefined, value?: z.output<S>): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
        if (error === undefined) {
          resolve(value as z.output<S>);
          return;
        }
        outgoing.destroy();
        reject(error);
      };
      const timer = setTimeout(() => {
        finish(new HostError('host_timeout', `no answer to ${where} within ${deadlineMs} ms`));
      }, deadlineMs);
      const onAbort = (): void => {
        finish(asError(signal?.reason));
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      outgoing.on('error', (error: NodeJS.ErrnoException) => {
        if (!answered && outgoing.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE')) {
          finish(new StaleConnectionError());
          return;
        }
        finish(new HostError('host_unreachable', `${where}: ${error.message}`, { cause: error }));
      });
      outgoing.on('response', (response) => {
        answered = true;
        readBody(response, request.maxBytes ?? ANSWER_MAX_BYTES).then(
          ({ text, whole }) => {
            const outcome = parseAnswer(request.schema, response.statusCode ?? 0, text, whole, where);
            if (outcome instanceof HostError) finish(outcome);
            else finish(undefined, outcome.value);
          },
          (error: unknown) => finish(asError(error)),
        );
      });
      outgoing.end(payload);
    });
  }
}

/** A pooled connection was closed by the host before it read the request. Never leaves this file. */
class StaleConnectionError extends Error {}

function targetOf(url: string): { socketPath: string } | { host: string; port: number } {
  if (url.startsWith('unix:/')) return { socketPath: url.slice('unix:'.length) };
  const parsed = URL.parse(url);
  if (parsed?.protocol !== 'http:') throw new TypeError(`a host's address is unix:/path or http://address:port, not ${url}`);
  return { host: parsed.hostname.replace(/^\[(.*)\]$/, '$1'), port: parsed.port === '' ? 80 : Number(parsed.port) };
}

/** Reads at most `maxBytes`. `whole` is false when the connection broke before the end of the body. */
function readBody(response: http.IncomingMessage, maxBytes: number): Promise<{ text: string; whole: boolean }> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.byteLength;
      if (bytes <= maxBytes) {
        chunks.push(chunk);
        return;
      }
      reject(new HostError('invalid_answer', `the answer is longer than ${maxBytes} bytes`));
      response.destroy();
    });
    const settle = (whole: boolean) => (): void => resolve({ text: Buffer.concat(chunks).toString('utf8'), whole });
    response.on('end', settle(true));
    // After 'error' or a premature close what came so far may still hold the error envelope that explains it.
    response.on('error', settle(false));
    response.on('close', settle(false));
  });
}

function parseAnswer<S extends z.ZodType>(
  schema: S,
  status: number,
  text: string,
  whole: boolean,
  where: string,
): HostError | { value: z.output<S> } {
  let json: unknown;
  try {
    // Leading spaces that kept the connection busy are white space to JSON too.
    json = JSON.parse(text);
  } catch (error) {
    if (!whole) return new HostError('host_unreachable', `${where}: the connection broke in the middle of the answer`);
    return new HostError('invalid_answer', `${where}: status ${status} with a body that is not JSON`, { cause: error });
  }
  const refused = hostError.safeParse(json);
  if (refused.success) {
    const { code, message, shortage } = refused.data.error;
    return new HostError(code, message, { shortage });
  }
  if (!whole) return new HostError('host_unreachable', `${where}: the connection broke in the middle of the answer`);
  if (status !== 200) return new HostError('invalid_answer', `${where}: status ${status} without an error the protocol knows`);
  const answer = schema.safeParse(json);
  if (answer.success) return { value: answer.data };
  const issue = answer.error.issues[0];
  return new HostError('invalid_answer', `${where}: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'unknown fault'}`);
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason), { cause: reason });
}
