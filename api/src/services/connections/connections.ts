// Connections into sandboxes, directly through the host. Opens them, and rechecks their credential,
// permission and sandbox while they are open. Independent of the protocols above and below.
import type { Duplex } from 'node:stream';
import { WEBSOCKET } from '@berth/contract/route/limits.ts';
import type { Route } from '@berth/contract/route/route.ts';
import type { TerminalAsked } from '@berth/protocol/calls/connections.ts';
import type { HostClient, OwnedVm } from '../../hosts/client.ts';
import { HostError } from '../../hosts/error.ts';
import type { Actor } from '../../rules/access/access.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import type { LocatedSandboxRow } from '../../store/sandboxes/sandboxes.ts';
import { authorize } from '../access/access.ts';
import { trackActivity } from '../sandboxes/activity-signal.ts';
import { authenticate, readToken, type BearerToken } from '../access/authentication.ts';
import type { ServiceContext } from '../context/context.ts';
import { commandRefusal } from '../hosts/command-failure.ts';
import { explainHostFailure } from '../hosts/failure.ts';
import { requireLegal } from '../../rules/sandboxes/action.ts';
import { ensureAwake, type SandboxInUse } from '../sandboxes/use.ts';
import { stageVariables } from '../sandboxes/variables.ts';

/**
 * Closes a connection that could not be checked for this long because the database is unavailable.
 */
const UNCHECKED_MS = 30_000;
/** Shortest time between renewals. Tokens last for minutes at least. */
const RENEWAL_MS = 10_000;

/** A request for a connection, with its caller and route. */
export interface Connecting {
  route: Route;
  actor: Actor;
  bearer: BearerToken;
  sandbox: LocatedSandboxRow;
  /** Aborts the opening. */
  signal: AbortSignal;
}

/** The same for a use by a link, which has no credential of its own. */
export interface ConnectingByLink extends Pick<Connecting, 'sandbox' | 'signal'> {
  /** The sandbox as it is now. Throws once the link opens no more. */
  readmit(this: void): Promise<LocatedSandboxRow>;
}

type Variables = Readonly<Record<string, string>>;

/** The sandbox of a connection. */
interface Entered {
  sandbox: SandboxInUse;
  /** Gives the VM the variables of a program; see {@link stageVariables}. */
  stage(this: void, requested?: Variables): Promise<{ variables?: string }>;
}

/** Target of a connection, and its representation in the activity feed. */
export interface ConnectionTarget {
  /** Name for use in a sentence. */
  name: string;
  details: Readonly<Record<string, unknown>>;
  open(host: HostClient, vm: OwnedVm, signal: AbortSignal, entered: Entered): Promise<Duplex>;
  /** Error for a refusal that only this kind of target has. */
  refusal?(error: unknown): CodedError | undefined;
}

export function toPort(port: number): ConnectionTarget {
  return {
    name: `port ${port}`,
    details: { port },
    open: (host, vm, signal) => host.openPort(vm, port, { signal }),
  };
}

/** The login shell in a terminal, or a command in a terminal or with pipes. */
export function toTerminal(asked: TerminalAsked, env?: Variables): ConnectionTarget {
  return {
    name: asked.command === null ? 'a terminal' : 'a command',
    // The command itself is the tenant's data and is never recorded.
    details: asked.command === null ? { terminal: true } : { command: true, terminal: asked.tty },
    open: async (host, vm, signal, { stage }) => host.openTerminal(vm, { ...asked, ...(await stage(env)) }, { signal }),
    refusal: (error) => commandRefusal(error, { ...asked, part: 'query' }),
  };
}

/**
 * Opens a connection into a sandbox that is awake, or is woken if its project has wake-on-use and
 * `mayWake` is not false.
 * Throws `sandbox_state_conflict`, `port_refused`, `port_forbidden`, `too_many_connections`,
 * `sandbox_unreachable` or `host_unavailable`, and the errors of a wake.
 */
export async function connect(
  context: ServiceContext,
  connecting: Connecting,
  target: ConnectionTarget,
  mayWake = true,
): Promise<SandboxConnection> {
  const { actor, signal } = connecting;
  const sandbox = await ensureAwake(
    context,
    actor,
    connecting.sandbox,
    { action: 'connect', signalOfUse: 'connect', mayWake },
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
  return new SandboxConnection(context, connecting, stream, trackActivity(context, sandbox.id, 'connect'));
}

async function openStream(
  context: ServiceContext,
  sandbox: SandboxInUse,
  target: ConnectionTarget,
  signal: AbortSignal,
): Promise<Duplex> {
  const vm = { vmId: sandbox.id, orgId: sandbox.org_id };
  try {
    const stage = (requested?: Variables) => stageVariables(context, sandbox, { signal, requested });
    return await target.open(context.hosts.at(sandbox.host_url), vm, signal, { sandbox, stage });
  } catch (error) {
    const refusal = target.refusal?.(error) ?? openRefusal(error, target.name);
    throw refusal ?? (await explainHostFailure(context, sandbox.id, 'connect', error));
  }
}

/** Error for a host's refusal that is no fault; undefined for faults. */
export function openRefusal(error: unknown, name: string): CodedError | undefined {
  if (!(error instanceof HostError)) return undefined;
  switch (error.code) {
    case 'port_refused':
      return new CodedError('port_refused', `nothing listens on ${name} of the sandbox`, { cause: error });
    case 'port_forbidden':
      return new CodedError('port_forbidden', `${name} is reserved for Berth's guest daemon`, { cause: error });
    case 'too_many_streams':
      // The message names the limit and the setting.
      return new CodedError('too_many_connections', `the limit of open connections is reached: ${error.message}`, {
        cause: error,
      });
    default:
      return undefined;
  }
}

/** An open connection. The holder closes it. */
export class SandboxConnection {
  readonly stream: Duplex;
  /** Resolves with the reason once the connection must close. */
  readonly over: Promise<CodedError>;
  readonly #context: ServiceContext;
  readonly #connecting: Connecting | ConnectingByLink;
  readonly #ended = Promise.withResolvers<CodedError>();
  readonly #closed = new AbortController();
  readonly #use: { end(): void } | undefined;
  #bearer: BearerToken | undefined;
  /** Times of the last successful check and of the last attempt. */
  #checkedAtMs = performance.now();
  #askedAtMs = performance.now();
  #renewedAtMs = Number.NEGATIVE_INFINITY;

  /** @param use ends with the connection; absent: it is no use of the sandbox */
  constructor(
    context: ServiceContext,
    connecting: Connecting | ConnectingByLink,
    stream: Duplex,
    use?: { end(): void },
  ) {
    this.#context = context;
    this.#connecting = connecting;
    this.#bearer = 'bearer' in connecting ? connecting.bearer : undefined;
    this.stream = stream;
    this.over = this.#ended.promise;
    this.#use = use;
    void this.#watch();
  }

  /**
   * Checks the connection against this token from now on. Throws if the token belongs to another
   * user or may not connect; the former token then stays in force.
   */
  async renew(token: string): Promise<void> {
    if (performance.now() - this.#renewedAtMs < RENEWAL_MS)
      throw new CodedError('rate_limited', `a connection accepts a new token at most every ${RENEWAL_MS / 1_000} s`);

    this.#renewedAtMs = performance.now();
    const bearer = readToken(`Bearer ${token}`);
    const connecting = this.#connecting;
    if ('readmit' in connecting) throw new Error('the connection of a link has no token');
    const { userId } = await this.#authorized(connecting, bearer);
    if (userId !== connecting.actor.userId)
      throw new CodedError('unauthenticated', 'the token must belong to the user who opened the connection');

    this.#bearer = bearer;
    this.#checkedAtMs = performance.now();
  }

  /** The error if the stream broke because access was lost; null otherwise. */
  async refusalAfterBreak(): Promise<CodedError | null> {
    const refusal = await this.#check();
    return refusal?.code === 'internal' ? null : refusal;
  }

  /** Destroys the stream unless both directions have finished. */
  close(): void {
    if (this.#closed.signal.aborted) return;
    this.#closed.abort();
    this.#use?.end();
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

  /** null while the connection may stay open. */
  async #check(): Promise<CodedError | null> {
    this.#askedAtMs = performance.now();
    const bearer = this.#bearer;
    try {
      await this.#requireAccess(bearer);
      this.#checkedAtMs = performance.now();
      return null;
    } catch (error) {
      // Renewed concurrently: the refusal concerns the former token.
      if (bearer !== this.#bearer) return this.#check();
      if (error instanceof CodedError) return error;
      const uncheckedMs = performance.now() - this.#checkedAtMs;
      this.#context.log.warn(
        { err: error, sandboxId: this.#connecting.sandbox.id, uncheckedMs },
        'could not recheck the access of an open connection',
      );
      return uncheckedMs < UNCHECKED_MS
        ? null
        : new CodedError('internal', 'the access of the connection could not be rechecked in time', { cause: error });
    }
  }

  async #requireAccess(bearer: BearerToken | undefined): Promise<void> {
    const connecting = this.#connecting;
    if ('readmit' in connecting) requireLegal('connect', (await connecting.readmit()).status);
    else await this.#authorized(connecting, bearer ?? connecting.bearer);
  }

  async #authorized({ route, sandbox, actor }: Connecting, bearer: BearerToken): Promise<Actor> {
    const found = await authenticate(this.#context, { bearer, namedId: sandbox.id, requestId: actor.requestId });
    await authorize(this.#context, found.actor, route, { sandboxId: sandbox.id }, found.named);
    if (found.named.sandbox !== undefined) requireLegal('connect', found.named.sandbox.status);
    return found.actor;
  }
}
