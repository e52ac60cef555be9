// Lets a visitor in: the link or cookie is looked at, and the sandbox behind it is awake, noted as
// used, or woken where its project says so.
import { SANDBOX_ACTION_RULES, type SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { CodedError } from '../rules/coded-error.ts';
import { noteActivity, NOTED_WITHIN_MS } from '../services/sandboxes/activity-signal.ts';
import type { ServiceContext } from '../services/context/context.ts';
import {
  openPreview,
  signInUrl,
  type PreviewAccess,
  type PreviewEnd,
  type PreviewRefusal,
  type PreviewVisit,
} from '../services/previews/access.ts';
import type { LocatedSandboxRow } from '../services/sandboxes/sandboxes.ts';
import { waitWhileUnderWay } from '../services/sandboxes/wait.ts';
import { awakeForUse, reread } from '../services/sandboxes/wake-on-use.ts';
import type { MachineConnections } from './connections.ts';
import type { Machines } from './machines.ts';
import type { PreviewParts } from './parts.ts';
import {
  asleep,
  EXPIRED,
  FAILED,
  INVALID_LINK,
  NO_LINK,
  NOT_FOUND,
  NOT_WOKEN,
  REVOKED,
  STARTING,
  UNREACHABLE,
  type Refusal,
} from './refusals.ts';

export interface Admitted {
  access: PreviewAccess;
  connections: MachineConnections;
}

export type Admission = { admitted: Admitted } | { refusal: Refusal } | { signInAt: string };

const REFUSALS: { readonly [why in PreviewRefusal & string]: Refusal } = {
  no_link: NO_LINK,
  invalid_link: INVALID_LINK,
  expired: EXPIRED,
  revoked: REVOKED,
  sandbox_gone: NOT_FOUND,
};

/**
 * `target` is the path that is asked for, without our tokens; `signal` ends the waiting for a wake.
 */
export async function admit(
  parts: PreviewParts,
  visit: PreviewVisit,
  target: string,
  signal: () => AbortSignal,
): Promise<Admission> {
  const { context, machines } = parts;
  const opened = await openPreview(context, visit);
  if ('refusal' in opened) {
    const { refusal } = opened;
    return typeof refusal === 'string' ? { refusal: REFUSALS[refusal] } : { signInAt: signInUrl(refusal, target) };
  }
  const { access } = opened;
  const connections = connectionsTo(machines, access.sandbox);
  if (connections !== undefined && performance.now() - connections.notedAtMs < NOTED_WITHIN_MS)
    return { admitted: { access, connections } };
  // It may have been woken in the second for which it is remembered.
  const sandbox = isAwake(access.sandbox.status) ? access.sandbox : await reread(context, access.sandbox);
  return await takeIntoUse(parts, access, sandbox, signal);
}

/** The same for a sandbox that turned out not to be as its row said. */
export async function admitAgain(
  parts: PreviewParts,
  access: PreviewAccess,
  signal: () => AbortSignal,
): Promise<Admission> {
  return await takeIntoUse(parts, access, await reread(parts.context, access.sandbox), signal);
}

/** What a visitor is told whose sandbox is not awake; undefined when it is. */
export function refusalOf(status: SandboxStatus, access: PreviewAccess): Refusal | undefined {
  if (isAwake(status)) return undefined;
  switch (status) {
    case 'sleeping':
    case 'stopped':
      return asleep(access.link.kind === 'team');
    case 'provisioning':
    case 'waking':
      return STARTING;
    case 'failed':
      return FAILED;
    default:
      return NOT_FOUND;
  }
}

/** What somebody is told whose request was held until it may not go on; `name` is for the log. */
export function refusalAtEnd(end: PreviewEnd): { name: string; refusal: Refusal } {
  if (typeof end !== 'string') return { name: 'signed_out', refusal: NO_LINK };
  return { name: end, refusal: end === 'sandbox_not_awake' || end === 'unchecked' ? UNREACHABLE : REFUSALS[end] };
}

async function takeIntoUse(
  parts: PreviewParts,
  access: PreviewAccess,
  sandbox: LocatedSandboxRow,
  signal: () => AbortSignal,
): Promise<Admission> {
  const { context, machines } = parts;
  const awake = await awakeFor(parts, access, sandbox, signal);
  if (!('id' in awake)) return { refusal: awake };
  // Before it is used, so that who is about to put it to sleep for being idle finds this, or this
  // finds that it fell asleep.
  if (await noteActivity(context, awake, 'preview')) return admitted(machines, access, awake);
  const again = await awakeFor(parts, access, await reread(context, awake), signal);
  return 'id' in again ? admitted(machines, access, again) : { refusal: again };
}

function admitted(machines: Machines, access: PreviewAccess, sandbox: LocatedSandboxRow): Admission {
  const connections = connectionsTo(machines, sandbox);
  if (connections === undefined) return { refusal: UNREACHABLE };
  connections.notedAtMs = performance.now();
  return { admitted: { access, connections } };
}

/** The sandbox, awake; or what its visitor is told instead. */
async function awakeFor(
  { context, bounds: { startingMs } }: PreviewParts,
  access: PreviewAccess,
  sandbox: LocatedSandboxRow,
  signal: () => AbortSignal,
): Promise<LocatedSandboxRow | Refusal> {
  if (isAwake(sandbox.status)) return sandbox;
  try {
    const now =
      refusalOf(sandbox.status, access) === STARTING
        ? await untilStarted(context, sandbox, startingMs, signal())
        : sandbox;
    return await awakeForUse(context, wakerOf(access), now, 'connect', signal());
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    context.log.debug({ err: error, sandboxId: sandbox.id }, 'a sandbox is not awake for a preview');
    if (error.code !== 'sandbox_state_conflict') return NOT_WOKEN;
    const latest = await reread(context, sandbox);
    return isAwake(latest.status) ? latest : (refusalOf(latest.status, access) ?? STARTING);
  }
}

/** Whoever is about to be awake is waited for, whether or not a visit would wake it. */
async function untilStarted(
  context: ServiceContext,
  sandbox: LocatedSandboxRow,
  forMs: number,
  signal: AbortSignal,
): Promise<LocatedSandboxRow> {
  const watch = context.changes.watch(sandbox.id);
  try {
    await waitWhileUnderWay(
      context,
      watch,
      await reread(context, sandbox),
      AbortSignal.any([signal, AbortSignal.timeout(forMs)]),
    );
    signal.throwIfAborted();
    return await reread(context, sandbox);
  } finally {
    watch.close();
  }
}

/** On whose behalf a visit wakes: a visitor of a public link is nobody in particular. */
function wakerOf({ link }: PreviewAccess): Parameters<typeof awakeForUse>[1] {
  return link.kind === 'team'
    ? { kind: 'session', id: link.loginId, userId: link.userId, requestId: null }
    : { kind: 'system', id: null, userId: null };
}

function connectionsTo(machines: Machines, sandbox: LocatedSandboxRow): MachineConnections | undefined {
  const { id: sandboxId, epoch, host_url: hostUrl } = sandbox;
  if (hostUrl === null || !isAwake(sandbox.status)) return undefined;
  return machines.connectionsOf({ sandboxId, epoch, hostUrl });
}

function isAwake(status: SandboxStatus): boolean {
  return SANDBOX_ACTION_RULES.connect[status] === 'do';
}
