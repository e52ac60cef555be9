// Admits preview requests: checks link or cookie, then makes sure that the sandbox is awake and
// recorded as in use. Wakes it where its project allows that.
import { SANDBOX_ACTION_RULES, type SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { CodedError } from '../rules/coded-error.ts';
import { recordActivity, RECORDED_WITHIN_MS } from '../services/sandboxes/activity-signal.ts';
import type { ServiceContext } from '../services/context/context.ts';
import {
  openPreview,
  signInUrl,
  type PreviewAccess,
  type PreviewEnd,
  type PreviewRefusal,
  type PreviewCredentials,
} from '../services/previews/access.ts';
import type { LocatedSandboxRow } from '../services/sandboxes/sandboxes.ts';
import { ensureAwake } from '../services/sandboxes/use.ts';
import { waitWhileInTransition } from '../services/sandboxes/wait.ts';
import { reread } from '../services/sandboxes/wake-on-use.ts';
import type { ConnectionPool } from './connection-pool.ts';
import type { ConnectionPools } from './connection-pools.ts';
import {
  asleep,
  CROSS_ORIGIN,
  EXPIRED,
  FAILED,
  INVALID_LINK,
  KEY_REFUSED,
  NO_LINK,
  NOT_FOUND,
  NOT_WOKEN,
  REVOKED,
  STARTING,
  UNREACHABLE,
  type Refusal,
} from './refusals.ts';
import type { PreviewRuntime } from './runtime.ts';

export interface Admitted {
  access: PreviewAccess;
  pool: ConnectionPool;
}

export type Admission = { admitted: Admitted } | { refusal: Refusal } | { signInAt: string };

/** Ends a proxied request or WebSocket early; `code` is logged. */
export interface Abort {
  code: string;
  refusal: Refusal;
}

const REFUSALS: { readonly [why in PreviewRefusal & string]: Refusal } = {
  no_link: NO_LINK,
  invalid_link: INVALID_LINK,
  key_refused: KEY_REFUSED,
  expired: EXPIRED,
  revoked: REVOKED,
  sandbox_gone: NOT_FOUND,
};

/** A preview request's facts for admission. */
export interface Visit extends PreviewCredentials {
  /** Path and query, without preview tokens. */
  target: string;
  /** A page of another origin frames the preview. */
  isFramed: boolean;
  /** Network address of the client. */
  address: string;
}

/**
 * `signal` aborts the wait for a wake. `enter` counts an anonymous visitor of a preview's owner,
 * and returns a refusal beyond the limits.
 */
export async function admit(
  runtime: PreviewRuntime,
  visit: Visit,
  signal: () => AbortSignal,
  enter: (owner: string) => Refusal | undefined,
): Promise<Admission> {
  const { context, accessCache, pools } = runtime;
  const { apiKey, address } = visit;
  const open = (): ReturnType<typeof openPreview> => openPreview(accessCache, visit);
  const opened = apiKey === undefined || apiKey === null ? await open() : await guarded(runtime, address, apiKey, open);
  // Before the count: a page can repeat it in its visitors' browsers.
  if (visit.isFramed && 'access' in opened && !opened.access.embeddable) return { refusal: CROSS_ORIGIN };
  const isMember = 'access' in opened && opened.access.link.kind !== 'public';
  const excess = isMember ? undefined : enter(ownerOf(opened, visit));
  if (excess !== undefined) return { refusal: excess };
  if ('refusal' in opened) {
    const { refusal } = opened;
    return typeof refusal === 'string'
      ? { refusal: REFUSALS[refusal] }
      : { signInAt: signInUrl(refusal, visit.target) };
  }
  const { access } = opened;
  const pool = poolOf(pools, access.sandbox);
  if (pool !== undefined && performance.now() - pool.notedAtMs < RECORDED_WITHIN_MS)
    return { admitted: { access, pool } };
  // The row was cached for up to a second; the sandbox may have been woken since.
  const sandbox = isAwake(access.sandbox.status) ? access.sandbox : await reread(context, access.sandbox);
  return await admitAwake(runtime, access, sandbox, signal);
}

/**
 * Owner of the preview, for the limits of an address: its org; for a redirect to the sign-in, which
 * does not look the org up, its sandbox. All visitors without a valid link count together.
 */
function ownerOf(opened: Awaited<ReturnType<typeof openPreview>>, { sandboxId }: Visit): string {
  if ('access' in opened) return opened.access.orgId;
  return typeof opened.refusal === 'string' ? '' : sandboxId;
}

/** Limits the look-ups of invalid API keys per address, together with those of the API. */
async function guarded(
  { failures }: PreviewRuntime,
  address: string,
  apiKey: string,
  open: () => ReturnType<typeof openPreview>,
): ReturnType<typeof openPreview> {
  try {
    return await failures.guard(address, { sha256: Buffer.from(apiKey, 'base64url') }, async () => {
      const opened = await open();
      if ('refusal' in opened && opened.refusal === 'key_refused')
        throw new CodedError('unauthenticated', 'no such key');
      return opened;
    });
  } catch (error) {
    if (error instanceof CodedError) return { refusal: 'key_refused' };
    throw error;
  }
}

/** Admits a request again whose sandbox was not running as recorded in its row. */
export async function readmit(
  runtime: PreviewRuntime,
  access: PreviewAccess,
  signal: () => AbortSignal,
): Promise<Admission> {
  return await admitAwake(runtime, access, await reread(runtime.context, access.sandbox), signal);
}

/** Returns undefined for a sandbox that is awake. */
function refusalOf(status: SandboxStatus, access: PreviewAccess): Refusal | undefined {
  if (isAwake(status)) return undefined;
  switch (status) {
    case 'sleeping':
    case 'stopped':
      return asleep(access.link.kind !== 'public');
    case 'provisioning':
    case 'waking':
      return STARTING;
    case 'failed':
      return FAILED;
    default:
      return NOT_FOUND;
  }
}

/** Cuts the open connections of a lease that has ended. */
export function cutAtEnd(end: PreviewEnd): Abort {
  if (typeof end !== 'string') return { code: 'signed_out', refusal: NO_LINK };
  return { code: end, refusal: end === 'sandbox_not_awake' || end === 'unchecked' ? UNREACHABLE : REFUSALS[end] };
}

async function admitAwake(
  runtime: PreviewRuntime,
  access: PreviewAccess,
  sandbox: LocatedSandboxRow,
  signal: () => AbortSignal,
): Promise<Admission> {
  const { context, pools, bounds } = runtime;
  let awake = sandbox;
  try {
    if (refusalOf(sandbox.status, access) === STARTING)
      awake = await untilStarted(context, sandbox, bounds.startingMs, signal());
    const use = { action: 'connect', signalOfUse: 'preview' } as const;
    awake = await ensureAwake(context, wakerOf(access), awake, use, signal());
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    context.log.debug({ err: error, sandboxId: sandbox.id }, 'sandbox of a preview is not awake');
    if (error.code !== 'sandbox_state_conflict') return { refusal: NOT_WOKEN };
    awake = await reread(context, sandbox);
    const refusal = refusalOf(awake.status, access);
    if (refusal !== undefined) return { refusal };
    // Woken by another caller meanwhile.
    await recordActivity(context, awake, 'preview');
  }
  const pool = poolOf(pools, awake);
  if (pool === undefined) return { refusal: UNREACHABLE };
  pool.notedAtMs = performance.now();
  return { admitted: { access, pool } };
}

/** Waits for a sandbox that is becoming awake anyhow, for at most `timeoutMs`. */
async function untilStarted(
  context: ServiceContext,
  sandbox: LocatedSandboxRow,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<LocatedSandboxRow> {
  const watch = context.changes.watch(sandbox.id);
  const waiting = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  try {
    await waitWhileInTransition(context, watch, await reread(context, sandbox), waiting);
    signal.throwIfAborted();
    return await reread(context, sandbox);
  } finally {
    watch.close();
  }
}

/** The actor of a wake: the member of a team link, the API key; for a public link the service. */
function wakerOf({ link }: PreviewAccess): Parameters<typeof ensureAwake>[1] {
  switch (link.kind) {
    case 'team':
      return { kind: 'session', id: link.loginId, userId: link.userId, requestId: null };
    case 'key':
      return { kind: 'api_key', id: link.keyId, userId: link.userId, requestId: null };
    default:
      return { kind: 'system', id: null, userId: null };
  }
}

function poolOf(pools: ConnectionPools, sandbox: LocatedSandboxRow): ConnectionPool | undefined {
  const { id: sandboxId, org_id: orgId, epoch, host_url: hostUrl } = sandbox;
  if (hostUrl === null || !isAwake(sandbox.status)) return undefined;
  return pools.poolFor({ sandboxId, orgId, epoch, hostUrl });
}

function isAwake(status: SandboxStatus): boolean {
  return SANDBOX_ACTION_RULES.connect[status] === 'do';
}
