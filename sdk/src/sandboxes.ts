// Sandboxes of an org.
import type { Calls } from './calls.ts';
import type { CreateSandboxData } from './generated/raw/index.ts';
import { Sandbox, TRANSITION_TIMEOUT_MS, type TransitionOptions } from './sandbox.ts';
import { SandboxStreams } from './sandbox-streams.ts';
import type { CallOptions } from './transport/transport.ts';

/** Fields of a create request; the project is optional if the client has one. */
export type SandboxSpec = Omit<CreateSandboxData['body'], 'projectId'> & { projectId?: string };

export interface CreateOptions extends TransitionOptions {
  orgId?: string;
  /**
   * Unique per sandbox, such as an order id. Repeating a create with the same key and fields within
   * a day returns the first sandbox.
   */
  idempotencyKey?: string;
}

export interface ListOptions extends CallOptions {
  orgId?: string;
  /** Only sandboxes of this end user. */
  endUserId?: string;
}

const LOST =
  'The sandbox may have been created. List the sandboxes before you retry ' +
  '(`berth.sandboxes.list({ endUserId })`, or by a label in `metadata`), or ' +
  'create with an `idempotencyKey`: repeating the call then returns the first sandbox.';
const LOST_WITH_KEY = 'Repeat the call with the same idempotencyKey: it returns the sandbox, or creates it.';

export class Sandboxes {
  readonly #calls: Calls;

  /** Constructed by the SDK. */
  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /**
   * Creates a sandbox and waits until it is awake. With `wait: false` it may still be
   * `provisioning`.
   */
  async create(
    spec: SandboxSpec,
    { orgId, idempotencyKey, wait = true, signal, timeoutMs = TRANSITION_TIMEOUT_MS }: CreateOptions = {},
  ): Promise<Sandbox> {
    const startedMs = Date.now();
    const { raw, with: set } = this.#calls;
    const body = { ...spec, projectId: this.#calls.projectId(spec.projectId) };
    const path = { orgId: await this.#calls.orgId(orgId) };
    const headers = {
      ...(idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey }),
      ...(wait ? {} : { Prefer: 'respond-async' }),
    };
    const known = idempotencyKey !== undefined;
    const notes = { signal, ...(wait ? {} : { timeoutMs }), repeatable: known, whenLost: known ? LOST_WITH_KEY : LOST };
    const sandbox = new Sandbox(this.#calls, (await raw.createSandbox({ path, body, headers, ...set(notes) })).sandbox);
    return wait ? await sandbox.settle('running', startedMs, { signal, timeoutMs }, true) : sandbox;
  }

  /** Lists sandboxes, newest first, without deleted ones. */
  async list({ orgId, endUserId, ...options }: ListOptions = {}): Promise<Sandbox[]> {
    const { raw, with: set } = this.#calls;
    const query = endUserId === undefined ? {} : { endUserId };
    const { sandboxes } = await raw.listSandboxes({
      path: { orgId: await this.#calls.orgId(orgId) },
      query,
      ...set(options),
    });
    return sandboxes.map((data) => new Sandbox(this.#calls, data));
  }

  /** Streams of a sandbox by id, without requesting its record. */
  streams(sandboxId: string): SandboxStreams {
    return new SandboxStreams(this.#calls, sandboxId);
  }

  /** Returns a sandbox, including a deleted one. */
  async get(sandboxId: string, options: CallOptions = {}): Promise<Sandbox> {
    const { raw, with: set } = this.#calls;
    return new Sandbox(this.#calls, (await raw.getSandbox({ path: { sandboxId }, ...set(options) })).sandbox);
  }
}
