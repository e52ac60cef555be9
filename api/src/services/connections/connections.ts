// Connections into sandboxes, straight through the host: opens them, and holds them against their
// credential, permission and sandbox for as long as they are open. Must not know what speaks over
// them, nor over what they came.
import type { Duplex } from 'node:stream';
import { WEBSOCKET } from '@berth/contract/route/limits.ts';
import type { Route } from '@berth/contract/route/route.ts';
import type { TerminalAsked } from '@berth/protocol/calls/connections.ts';
import type { HostClient } from '../../hosts/client.ts';
import { HostError } from '../../hosts/error.ts';
import type { Actor } from '../../rules/access/access.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import type { LocatedSandboxRow } from '../../store/sandboxes/sandboxes.ts';
import { authorize } from '../access/access.ts';
import { holdActivity } from '../sandboxes/activity-signal.ts';
import { authenticate, readToken, type BearerToken } from '../access/authentication.ts';
import type { ServiceContext } from '../context/context.ts';
import { explainHostFailure } from '../hosts/failure.ts';
import { requireLegal } from '../../rules/sandboxes/action.ts';
import { ensureAwake, type SandboxInUse } from '../sandboxes/use.ts';

/**
 * A connection that could not be checked for this long, because the database is away, is closed.
 */
const UNCHECKED_MS = 30_000;
/** Tokens last for minutes at least: another one sooner than this is no renewal. */
const RENEWAL_MS = 10_000;

/** Who asks for a connection, and by which route. */
export interface Connecting {
  route: Route;
  actor: Actor;
  bearer: BearerToken;
  sandbox: LocatedSandboxRow;
  /** Ends the opening. */
  signal: AbortSignal;
}

/** What a connection leads to, and how the activity feed tells of it. */
export interface ConnectionTarget {
  /** In a sentence. */
  name: string;
  details: Readonly<Record<string, unknown>>;
  open(host: HostClient, sandboxId: string, signal: AbortSignal): Promise<Duplex>;
}

/** A TCP port of a sandbox. */
export function toPort(port: number): ConnectionTarget {
  return {
    name: `port ${port}`,
    details: { port },
    open: (host, sandboxId, signal) => host.openPort(sandboxId, port, { signal }),
  };
}

/** The login shell in a terminal of its own, or a command in one or with pipes. */
export function toTerminal(asked: TerminalAsked): ConnectionTarget {
  return {
    name: asked.command === null ? 'a terminal' : 'a command',
    // Never the command: that is the tenant's.
    details: asked.command === null ? { terminal: true } : { command: true, terminal: asked.tty },
    open: (host, sandboxId, signal) => host.openTerminal(sandboxId, asked, { signal }),
  };
}

/**
 * Opens a connection into a sandbox that is awake, or is woken for it where its project says so.
 * Throws `sandbox_state_conflict`, `port_refused`, `port_forbidden`, `too_many_connections`,
 * `sandbox_unreachable` or `host_unavailable`, and where it wakes the sandbox, what a wake throws.
 */
export async function connect(
  context: ServiceContext,
  connecting: Connecting,
  target: ConnectionTarget,
): Promise<SandboxConnection> {
  const { actor, signal } = connecting;
  const sandbox = await ensureAwake(
    context,
    actor,
    connecting.sandbox,
    { action: 'connect', signalOfUse: 'connect' },
    signal,
  );
  const stream = await openStream(context, sandbox, target, signal);
  try {
    await insertActivity(context.db, {
      orgId: sandbox.org_id,
      projectId: sandbox.project_id,
      sandboxId: sandbox.id,
      actor,
      kind: 'sandbox_connected',
      details: { ...target.details },
    });
  } catch (error) {
    stream.destroy();
    throw error;
  }
  return new SandboxConnection(context, connecting, stream);
}

async function openStream(
  context: ServiceContext,
  sandbox: SandboxInUse,
  target: ConnectionTarget,
  signal: AbortSignal,
): Promise<Duplex> {
  try {
    return await target.open(context.hosts.at(sandbox.host_url), sandbox.id, signal);
  } catch (error) {
    throw refusalOf(error, target.name) ?? (await explainHostFailure(context, sandbox.id, 'connect', error));
  }
}

/** What the host refuses a connection with while all is well; undefined for everything else. */
function refusalOf(error: unknown, name: string): CodedError | undefined {
  switch (error instanceof HostError ? error.code : undefined) {
    case 'port_refused':
      return new CodedError('port_refused', `nothing listens on ${name} of the sandbox`, { cause: error });
    case 'port_forbidden':
      return new CodedError('port_forbidden', `${name} is one that the sandbox's own service holds`, { cause: error });
    case 'too_many_streams':
      return new CodedError(
        'too_many_connections',
        'the sandbox, or its host, has as many connections open as it may',
        { cause: error },
      );
    default:
      return undefined;
  }
}

/** A connection that is open. Whoever has it closes it. */
export class SandboxConnection {
  readonly stream: Duplex;
  /** Resolves with why it may not stay open any more, once it may not. */
  readonly over: Promise<CodedError>;
  readonly #context: ServiceContext;
  readonly #connecting: Connecting;
  readonly #ended = Promise.withResolvers<CodedError>();
  readonly #closed = new AbortController();
  readonly #use: { end(): void };
  #bearer: BearerToken;
  /** When it was last found to be allowed, and when that was last asked. */
  #checkedAtMs = performance.now();
  #askedAtMs = performance.now();
  #renewedAtMs = Number.NEGATIVE_INFINITY;

  constructor(context: ServiceContext, connecting: Connecting, stream: Duplex) {
    this.#context = context;
    this.#connecting = connecting;
    this.#bearer = connecting.bearer;
    this.stream = stream;
    this.over = this.#ended.promise;
    this.#use = holdActivity(context, connecting.sandbox.id, 'connect');
    void this.#watch();
  }

  /**
   * From now on it is held against this token. Throws where that is not of the same user, or may
   * not connect; the former stays in force then.
   */
  async renew(token: string): Promise<void> {
    if (performance.now() - this.#renewedAtMs < RENEWAL_MS)
      throw new CodedError('rate_limited', `a connection takes another token every ${RENEWAL_MS / 1_000} s at most`);

    this.#renewedAtMs = performance.now();
    const bearer = readToken(`Bearer ${token}`);
    const { userId } = await this.#authorized(bearer);
    if (userId !== this.#connecting.actor.userId) {
      throw new CodedError(
        'unauthenticated',
        'the token is of another user than the one that the connection was opened with',
      );
    }

    this.#bearer = bearer;
    this.#checkedAtMs = performance.now();
  }

  /**
   * Why the stream broke: an error where it may not stay open any more; null where that is not the
   * reason.
   */
  async whyBroken(): Promise<CodedError | null> {
    const refusal = await this.#check();
    return refusal?.code === 'internal' ? null : refusal;
  }

  /** Closes the stream, unless it came to its end. */
  close(): void {
    if (this.#closed.signal.aborted) return;
    this.#closed.abort();
    this.#use.end();
    if (!this.stream.readableEnded || !this.stream.writableFinished) this.stream.destroy();
  }

  async #watch(): Promise<void> {
    const { signal } = this.#closed;
    const watch = this.#context.changes.watch(this.#connecting.sandbox.id);
    try {
      for (;;) {
        const dueInMs = Math.max(0, Math.ceil(this.#askedAtMs + WEBSOCKET.recheckMs - performance.now()));
        const changed = await watch.next(AbortSignal.any([signal, AbortSignal.timeout(dueInMs)]));
        if (signal.aborted) return;
        if (!changed && performance.now() - this.#askedAtMs < WEBSOCKET.recheckMs) continue;
        const refusal = await this.#check();
        if (refusal !== null) {
          this.#ended.resolve(refusal);
          return;
        }
      }
    } finally {
      watch.close();
    }
  }

  /** Null while it may stay open. */
  async #check(): Promise<CodedError | null> {
    this.#askedAtMs = performance.now();
    const bearer = this.#bearer;
    try {
      await this.#authorized(bearer);
      this.#checkedAtMs = performance.now();
      return null;
    } catch (error) {
      // Renewed meanwhile: the refusal is of a token that it is not held against any more.
      if (bearer !== this.#bearer) return this.#check();
      if (error instanceof CodedError) return error;
      const uncheckedMs = performance.now() - this.#checkedAtMs;
      this.#context.log.warn(
        { err: error, sandboxId: this.#connecting.sandbox.id, uncheckedMs },
        'an open connection could not be checked',
      );
      return uncheckedMs < UNCHECKED_MS
        ? null
        : new CodedError('internal', 'the connection could not be checked for too long', { cause: error });
    }
  }

  async #authorized(bearer: BearerToken): Promise<Actor> {
    const { route, sandbox, actor } = this.#connecting;
    const found = await authenticate(this.#context, { bearer, sandboxId: sandbox.id, requestId: actor.requestId });
    await authorize(this.#context, found.actor, route, { sandboxId: sandbox.id }, found.named);
    if (found.named.sandbox !== undefined) requireLegal('connect', found.named.sandbox.status);
    return found.actor;
  }
}
