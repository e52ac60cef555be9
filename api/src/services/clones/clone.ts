// The clone of a sandbox's repository: begun when its machine answers, with what it needs gathered
// at the moment it is asked for, and over before the sandbox is `ready`. workers/clone.ts asks the
// host.
//
//   clone_status: pending ── awake ──> a durable step for that epoch (clone_epoch) ──> cloned | failed
//                    └── falls asleep, or is lost, before the end: pending, and a step for the epoch in which it is awake again
import { SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import type { VmClone } from '@berth/protocol/calls/clones.ts';
import { cloneFailure } from '../../rules/clones/failure.ts';
import type { Reason } from '../../rules/sandboxes/machine-death.ts';
import { areCredentialsFor, urlOf } from '../../rules/clones/repository.ts';
import { insertActivity, type ActivityActor } from '../../store/activity/activity.ts';
import { findProject } from '../../store/orgs/projects.ts';
import { lockSandbox, writeCloneEnd, writeCloneEpoch } from '../../store/sandboxes/sandboxes.ts';
import type { DatabaseTransaction, SandboxRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';
import type { LifecycleQueue, LifecycleStep } from '../context/lifecycle-port.ts';
import { openRepoCredentials } from '../orgs/projects.ts';
import { CannotOpen } from '../context/sealed.ts';
import { transitionSandbox, type Transition, type TransitionResult } from '../sandboxes/transition.ts';
import type { GitSettings } from '../context/settings.ts';

const SYSTEM: ActivityActor = { kind: 'system', id: null, userId: null };
/** Where the project names none: any will do beside a token, and one host insists on this. */
const ANY_USERNAME = 'x-access-token';

/**
 * The sandbox's machine answers: it is `ready`, or `running` while there is a repository to be
 * cloned, together with the step that clones it. As {@link transitionSandbox}; a sandbox that comes
 * out `running` is one whose step waits to be started.
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

/**
 * Enqueues the step that clones the repository of a sandbox that is awake. The caller holds the
 * row's lock.
 */
export async function beginClone(
  trx: DatabaseTransaction,
  lifecycle: Pick<LifecycleQueue, 'enqueue'>,
  sandbox: SandboxRow,
): Promise<SandboxRow> {
  const begun = await writeCloneEpoch(trx, sandbox.id, sandbox.epoch);
  await note(trx, begun, 'sandbox_clone_started', { repository: begun.repository, branch: begun.branch });
  await lifecycle.enqueue(trx, 'clone', { sandboxId: begun.id, epoch: begun.epoch });
  return begun;
}

/**
 * Whether the step is still to be done by the sandbox's row. A resize takes a new epoch and leaves
 * the clone alone.
 */
export function cloneStands(sandbox: SandboxRow, step: LifecycleStep): boolean {
  return (
    sandbox.clone_status === 'pending' && sandbox.clone_epoch === step.epoch && SANDBOX_STATES[sandbox.status].awake
  );
}

/** What the host is asked to clone; `secrets`: what must be in nothing that is shown of it. */
export interface CloneRequest extends Pick<VmClone, 'url' | 'branch' | 'credentials'> {
  secrets: string[];
}

type CloneContext = Pick<ServiceContext, 'db' | 'secretKey'> & { git: GitSettings };

/**
 * What is to be cloned, with the project's credentials where they are for that host; or why it
 * cannot be.
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
    if (error instanceof CannotOpen) return { refused: cloneFailure('credentials_unusable') };
    throw error;
  }
}

/**
 * The secret as it may stand in text. A user name of a few letters is no secret, and in many a
 * word.
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
 * Writes how the step came out, `failure` why the repository could not be cloned, and with it the
 * sandbox is `ready`. `void` when the step is no longer to be done. Repeating it is harmless.
 */
export async function settleClone(
  trx: DatabaseTransaction,
  step: LifecycleStep,
  failure: Reason | null,
): Promise<'changed' | 'void'> {
  const before = await lockSandbox(trx, step.sandboxId);
  if (before === undefined || !cloneStands(before, step)) return 'void';
  const after = await writeCloneEnd(trx, before.id, failure);
  const kind = failure === null ? 'sandbox_clone_finished' : 'sandbox_clone_failed';
  await note(trx, after, kind, {
    repository: after.repository,
    branch: after.branch,
    ...(failure === null ? {} : { reason: failure }),
  });
  if (after.status === 'running') {
    // A resize that is under way goes on.
    const { id: sandboxId, epoch, resizing } = after;
    await transitionSandbox(trx, { sandboxId, epoch, to: 'ready', resizing, actor: SYSTEM });
  }
  return 'changed';
}

async function note(
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
