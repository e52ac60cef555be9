// Clones a sandbox's repository: starts when its VM is up, gathers credentials just before the
// request, and finishes before the sandbox is `ready`. workers/clones/clone.ts calls the host.
//
//   clone_status: pending ── awake ──> durable step for the epoch (clone_epoch) ──> cloned | failed
//                    └── asleep or lost before the end: pending; new step for the next awake epoch
import { SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import type { VmClone } from '@berth/protocol/calls/clones.ts';
import { cloneFailure } from '../../rules/clones/failure.ts';
import type { Reason } from '../../rules/sandboxes/machine-death.ts';
import { areCredentialsFor, urlOf } from '../../rules/clones/repository.ts';
import { insertActivity, type ActivityActor } from '../../store/activity/activity.ts';
import { findProject } from '../../store/orgs/projects.ts';
import { writeCloneOutput, type CloneOutput } from '../../store/sandboxes/clone-outputs.ts';
import { lockSandbox, writeCloneEnd, writeCloneEpoch } from '../../store/sandboxes/sandboxes.ts';
import type { DatabaseTransaction, SandboxRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';
import type { LifecycleQueue, LifecycleStep } from '../context/lifecycle-port.ts';
import { openRepoCredentials } from '../orgs/projects.ts';
import { UnsealError } from '../context/sealed.ts';
import { transitionSandbox, type Transition, type TransitionResult } from '../sandboxes/transition.ts';
import type { GitSettings } from '../context/settings.ts';

const SYSTEM: ActivityActor = { kind: 'system', id: null, userId: null };
/** Username if the project has none. Most git hosts ignore it beside a token; one requires this. */
const ANY_USERNAME = 'x-access-token';

/**
 * Settles a sandbox whose VM is up: `ready`, or `running` while its repository is being cloned,
 * with the clone's step enqueued. As {@link transitionSandbox}; after `running`, start the step.
 */
export async function settleAwake(
  trx: DatabaseTransaction,
  lifecycle: Pick<LifecycleQueue, 'enqueue'>,
  transition: Omit<Transition, 'to'>,
): Promise<TransitionResult> {
  const before = await lockSandbox(trx, transition.sandboxId);
  const pending = before?.clone_status === 'pending';
  const result = await transitionSandbox(trx, { ...transition, to: pending ? 'running' : 'ready' });
  if (!pending || result.outcome !== 'changed') return result;
  return { outcome: 'changed', sandbox: await beginClone(trx, lifecycle, result.sandbox) };
}

/** Enqueues the clone step of an awake sandbox. The caller holds the row lock. */
export async function beginClone(
  trx: DatabaseTransaction,
  lifecycle: Pick<LifecycleQueue, 'enqueue'>,
  sandbox: SandboxRow,
): Promise<SandboxRow> {
  const begun = await writeCloneEpoch(trx, sandbox.id, sandbox.epoch);
  await recordActivity(trx, begun, 'sandbox_clone_started', { repository: begun.repository, branch: begun.branch });
  await lifecycle.enqueue(trx, 'clone', { sandboxId: begun.id, epoch: begun.epoch });
  return begun;
}

/** True if the row still needs the step. A resize raises the epoch without voiding the clone. */
export function isCloneCurrent(sandbox: SandboxRow, step: LifecycleStep): boolean {
  return (
    sandbox.clone_status === 'pending' && sandbox.clone_epoch === step.epoch && SANDBOX_STATES[sandbox.status].awake
  );
}

/** Clone request for the host. `secrets` must be redacted from all output. */
interface CloneRequest extends Pick<VmClone, 'url' | 'branch' | 'credentials'> {
  secrets: string[];
}

type CloneContext = Pick<ServiceContext, 'db' | 'secretKey'> & { git: GitSettings };

/**
 * Prepares the clone, with the project's credentials if they are for that host. Returns the reason
 * if cloning is impossible.
 */
export async function prepareClone(
  context: CloneContext,
  sandbox: SandboxRow,
): Promise<CloneRequest | { refused: Reason }> {
  const { repository, branch } = sandbox;
  if (repository === null) throw new Error(`sandbox ${sandbox.id} has nothing to clone`);
  const url = urlOf(repository, context.git);
  if (url === null) return { refused: cloneFailure('repository_not_allowed') };
  try {
    const project = await findProject(context.db, sandbox.org_id, sandbox.project_id);
    const meant = project !== undefined && areCredentialsFor(url, project.default_repository, context.git);
    const stored = meant ? await openRepoCredentials(context, sandbox.project_id) : null;
    if (stored === null) return { url, branch, credentials: null, secrets: [] };
    const credentials = { username: stored.username ?? ANY_USERNAME, token: stored.token };
    return { url, branch, credentials, secrets: formsOf(credentials, stored.username) };
  } catch (error) {
    if (error instanceof UnsealError) return { refused: cloneFailure('credentials_unusable') };
    throw error;
  }
}

/**
 * Forms in which the secret may appear in text. A username shorter than 4 characters is left out:
 * it is no secret and occurs in many words.
 */
function formsOf({ username, token }: { username: string; token: string }, given: string | undefined): string[] {
  const pair = Buffer.from(`${username}:${token}`).toString('base64');
  const forms = [
    token,
    encodeURIComponent(token),
    JSON.stringify(token).slice(1, -1),
    Buffer.from(token).toString('base64'),
    pair,
  ];
  return given === undefined || given.length < 4 ? forms : [...forms, given, encodeURIComponent(given)];
}

/**
 * Writes the step's result (`failure`: the reason) with git's output, and makes the sandbox
 * `ready`. `void` if the step is obsolete. Idempotent.
 */
export async function settleClone(
  trx: DatabaseTransaction,
  step: LifecycleStep,
  failure: Reason | null,
  output: CloneOutput | null,
): Promise<'changed' | 'void'> {
  const before = await lockSandbox(trx, step.sandboxId);
  if (before === undefined || !isCloneCurrent(before, step)) return 'void';
  const after = await writeCloneEnd(trx, before.id, failure);
  await writeCloneOutput(trx, before.id, output);
  const kind = failure === null ? 'sandbox_clone_finished' : 'sandbox_clone_failed';
  await recordActivity(trx, after, kind, {
    repository: after.repository,
    branch: after.branch,
    ...(failure === null ? {} : { reason: failure }),
  });
  if (after.status === 'running') {
    // A resize in progress continues.
    const { id: sandboxId, epoch, resizing } = after;
    await transitionSandbox(trx, { sandboxId, epoch, to: 'ready', resizing, actor: SYSTEM });
  }
  return 'changed';
}

async function recordActivity(
  trx: DatabaseTransaction,
  sandbox: SandboxRow,
  kind: 'sandbox_clone_started' | 'sandbox_clone_finished' | 'sandbox_clone_failed',
  details: Record<string, unknown>,
): Promise<void> {
  await insertActivity(trx, {
    orgId: sandbox.org_id,
    projectId: sandbox.project_id,
    sandboxId: sandbox.id,
    actor: SYSTEM,
    kind,
    details,
  });
}
