// Sandboxes of an org.
import type { Calls } from './calls/calls.ts';
import type {
  CountSandboxesData,
  CountSandboxesResult,
  CreateSandboxData,
  ListSandboxesData,
  ListSandboxesResult,
} from './generated/raw/index.ts';
import type { OrgCallOptions } from './projects.ts';
import { Sandbox, TRANSITION_TIMEOUT_MS, type TransitionOptions } from './sandbox.ts';
import { SandboxProcesses } from './processes/processes.ts';
import { SandboxStreams } from './sandbox-streams.ts';
import { settle } from './calls/settle.ts';
import { BerthError } from './transport/errors.ts';
import { required } from './transport/query.ts';
import { Deadline, delay } from './transport/time.ts';
import type { CallOptions } from './transport/transport.ts';

type CreateBody = CreateSandboxData['body'];

/**
 * Fields of a create request. Default of `projectId`: the client's project, or the only one of the
 * org; of `agent`: `agent_one`.
 */
export type SandboxSpec = Omit<CreateBody, 'projectId' | 'agent' | 'getOrCreate'> &
  Partial<Pick<CreateBody, 'projectId' | 'agent'>>;

/** Fields of {@link Sandboxes.getOrCreate}. Default of `key`: `endUserId`. */
export type KeyedSandboxSpec = SandboxSpec & ({ key: string } | { endUserId: string });

export interface CreateOptions extends TransitionOptions {
  orgId?: string;
  /**
   * Unique per sandbox, such as an order id. Repeating a create with the same key and fields within
   * a day returns the first sandbox.
   */
  idempotencyKey?: string;
}

/** Filters of a list or a count; a sandbox must match all. Refused if a given one is undefined. */
export type SandboxFilter = NonNullable<CountSandboxesData['query']>;

/** Filters and order of a list. Default: all, newest first. */
export type ListOptions = Omit<PageOptions, 'limit' | 'after'>;
type PageOptions = CallOptions & NonNullable<ListSandboxesData['query']> & { orgId?: string };

/** Filters and order of {@link Sandboxes.all}. An order that changes meanwhile would skip some. */
export type AllOptions = Omit<ListOptions, 'sort'> & {
  sort?: 'createdAt' | '-createdAt';
  /** Sandboxes per request, at most 1000; default 100. */
  pageSize?: number;
};

export type SandboxCounts = CountSandboxesResult;

/** Timeout of the delete of a sandbox that failed in its create. */
const DELETE_TIMEOUT_MS = 30_000;
const LOST =
  'The sandbox may have been created. List the sandboxes before you retry ' +
  '(`berth.sandboxes.list({ endUserId })`, or by a label in `metadata`), or ' +
  'create with an `idempotencyKey`: repeating the call then returns the first sandbox.';
const LOST_WITH_KEY = 'Repeat the call with the same idempotencyKey: it returns the sandbox, or creates it.';

/** Reasons of `failed` by which the service confirms that the sandbox never ran. */
const NEVER_RAN: ReadonlySet<string | undefined> = new Set(['create_failed', 'insufficient_capacity']);

/**
 * Deletes a sandbox that failed in its create. Returns the error for the caller.
 * @param known the create may have returned an older sandbox, which may hold data
 */
async function withoutFailed(sandbox: Sandbox, error: unknown, known: boolean): Promise<unknown> {
  const reason = sandbox.data.statusReason?.code;
  const isFailed = error instanceof BerthError && error.code === 'unexpected_status' && sandbox.status === 'failed';
  if (!isFailed || (known && !NEVER_RAN.has(reason))) return error;
  try {
    await sandbox.destroy({ wait: false, timeoutMs: DELETE_TIMEOUT_MS });
  } catch (failure) {
    const why = failure instanceof Error ? failure.message : String(failure);
    return new BerthError(`${error.message}; it could not be deleted: ${why}`, {
      code: error.code,
      sandboxId: sandbox.id,
      cause: failure,
    });
  }
  // Another create with the same key would return the deleted sandbox.
  const retryable = !known && reason === 'insufficient_capacity';
  return new BerthError(`${error.message}; it was deleted`, { code: error.code, sandboxId: sandbox.id, retryable });
}

export class Sandboxes {
  readonly #calls: Calls;

  /** Constructed by the SDK. */
  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /**
   * Creates a sandbox and waits until it is awake. With `wait: false` it may still be
   * `provisioning`. A sandbox that fails in its create is deleted; any other error after the
   * service accepted the create has the sandbox's `sandboxId`.
   */
  async create(spec: SandboxSpec = {}, { idempotencyKey, ...options }: CreateOptions = {}): Promise<Sandbox> {
    const { wait = true, signal, timeoutMs = TRANSITION_TIMEOUT_MS } = options;
    const startedMs = Date.now();
    const known = idempotencyKey !== undefined;
    const headers = known ? { 'Idempotency-Key': idempotencyKey } : {};
    const notes = { repeatable: known, whenLost: known ? LOST_WITH_KEY : LOST };
    const sandbox = await this.#post(await this.#placed(spec, options), options, headers, notes);
    if (!wait) return sandbox;
    try {
      return await settle(sandbox, 'running', { startedMs, signal, timeoutMs }, true);
    } catch (error) {
      throw await withoutFailed(sandbox, error, known);
    }
  }

  /**
   * Returns the project's sandbox of a key, awake: wakes it, or creates it if there is none. For
   * one sandbox per end user: `await berth.sandboxes.getOrCreate({ endUserId })`. Concurrent calls
   * get the same sandbox. Fields that differ from its create are the error `sandbox_differs`,
   * except `name`, `metadata` and `idleMinutes`. With `wait: false` it may still be on its way.
   */
  async getOrCreate(spec: KeyedSandboxSpec, options: TransitionOptions & { orgId?: string } = {}): Promise<Sandbox> {
    const { wait = true, signal, timeoutMs = TRANSITION_TIMEOUT_MS } = options;
    const startedMs = Date.now();
    const { key = spec.endUserId, ...fields } = spec as SandboxSpec & { key?: string };
    if (key === undefined)
      throw new BerthError('getOrCreate requires a key or an endUserId', { code: 'configuration' });
    const notes = { repeatable: true, whenLost: 'Repeat the call: it returns the sandbox, or creates it.' };
    const placed = await this.#placed({ ...fields, getOrCreate: { key } }, options);
    const deadline = new Deadline(timeoutMs, `getOrCreate of the key ${JSON.stringify(key)}`, [signal]);
    try {
      for (;;) {
        try {
          const call = { ...options, signal: deadline.signal };
          const sandbox = await this.#post(placed, call, {}, notes);
          if (!wait) return sandbox;
          return await settle(sandbox, 'running', { startedMs, signal, timeoutMs }, true);
        } catch (error) {
          const falls = error instanceof BerthError && error.code === 'sandbox_state_conflict';
          if (!falls || error.retryAfter === undefined) throw error;
          await delay(error.retryAfter * 1_000, deadline.signal);
        }
      }
    } finally {
      deadline.end();
    }
  }

  /** The request of a create, with its org and project. */
  async #placed(
    spec: SandboxSpec & Pick<CreateBody, 'getOrCreate'>,
    options: { orgId?: string },
  ): Promise<{ path: { orgId: string }; body: CreateBody }> {
    if ('projectId' in spec) required(spec.projectId, 'projectId', "use the client's");
    const orgId = await this.#calls.orgId(options.orgId);
    const projectId = await this.#calls.projectId(spec.projectId, orgId);
    return { path: { orgId }, body: { agent: 'agent_one', ...spec, projectId } };
  }

  async #post(
    request: { path: { orgId: string }; body: CreateBody },
    { wait = true, signal, timeoutMs = TRANSITION_TIMEOUT_MS }: TransitionOptions,
    headers: Record<string, string>,
    notes: { repeatable: boolean; whenLost: string },
  ): Promise<Sandbox> {
    const { raw, with: set } = this.#calls;
    const { sandbox } = await raw.createSandbox({
      ...request,
      headers: { ...headers, ...(wait ? {} : { Prefer: 'respond-async' }) },
      ...set({ signal, ...(wait ? {} : { timeoutMs }), ...notes }),
    });
    return new Sandbox(this.#calls, sandbox);
  }

  /** Lists sandboxes without deleted ones. */
  async list(options: ListOptions = {}): Promise<Sandbox[]> {
    return (await this.#page(options)).sandboxes.map((data) => new Sandbox(this.#calls, data));
  }

  /**
   * Sandboxes as in {@link list}, each once, in pages: `for await (const sandbox of
   * berth.sandboxes.all())`. Sandboxes created or deleted meanwhile may be missing.
   */
  async *all({ pageSize = 100, ...options }: AllOptions = {}): AsyncGenerator<Sandbox, void, undefined> {
    for (let after: string | null | undefined; after !== null;) {
      const page = await this.#page({ ...options, limit: pageSize, ...(after === undefined ? {} : { after }) });
      for (const data of page.sandboxes) yield new Sandbox(this.#calls, data);
      after = page.nextCursor ?? null;
    }
  }

  /** Counts sandboxes by status, without deleted ones. */
  async counts(filter: SandboxFilter = {}, { orgId, ...options }: OrgCallOptions = {}): Promise<SandboxCounts> {
    const { raw, with: set } = this.#calls;
    const path = { orgId: await this.#calls.orgId(orgId) };
    return await raw.countSandboxes({ path, query: filter, ...set(options) });
  }

  /** Streams of a sandbox by id, without requesting its record. */
  streams(sandboxId: string): SandboxStreams {
    return new SandboxStreams(this.#calls, sandboxId);
  }

  /** Processes of a sandbox by id, without requesting its record. */
  processes(sandboxId: string): SandboxProcesses {
    return new SandboxProcesses(this.#calls, sandboxId);
  }

  /** Returns a sandbox, including a deleted one. */
  async get(sandboxId: string, options: CallOptions = {}): Promise<Sandbox> {
    const { raw, with: set } = this.#calls;
    return new Sandbox(this.#calls, (await raw.getSandbox({ path: { sandboxId }, ...set(options) })).sandbox);
  }

  async #page({ orgId, signal, timeoutMs, ...query }: PageOptions): Promise<ListSandboxesResult> {
    const { raw, with: set } = this.#calls;
    const path = { orgId: await this.#calls.orgId(orgId) };
    return await raw.listSandboxes({ path, query, ...set({ signal, timeoutMs }) });
  }
}
