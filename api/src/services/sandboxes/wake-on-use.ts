// Wake-on-use: wakes a stopped sandbox before use if its project has `wakeOnUse`; otherwise it must
// be awake already. A failed sandbox is left to a person, because the cause of the failure may
// recur.
import { WAKE_ON_USE_WAIT_MS } from '@berth/contract/route/limits.ts';
import { SANDBOX_ACTION_RULES, type SandboxAction, type SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { CodedError } from '../../rules/coded-error.ts';
import type { ActivityActor } from '../../store/activity/activity.ts';
import { findProject } from '../../store/orgs/projects.ts';
import { findSandbox, type LocatedSandboxRow } from '../../store/sandboxes/sandboxes.ts';
import type { SandboxRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';
import { requireLegal } from '../../rules/sandboxes/action.ts';
import { waitWhileInTransition } from './wait.ts';
import { requestWake } from './wake.ts';

/** Asleep, falling asleep or waking. */
const ASLEEP: ReadonlySet<SandboxStatus> = new Set<SandboxStatus>(['sleeping', 'stopped', 'waking']);

/**
 * The sandbox, awake: at once if it is; otherwise, with wake-on-use, after a wake of at most
 * `waitMs`. Throws `sandbox_state_conflict` naming the status, the errors of a wake, or the reason
 * of the caller's signal.
 */
export async function awakeForUse(
  context: ServiceContext,
  actor: ActivityActor,
  sandbox: LocatedSandboxRow,
  action: SandboxAction,
  signal: AbortSignal,
  waitMs = WAKE_ON_USE_WAIT_MS,
): Promise<LocatedSandboxRow> {
  if (isLegal(action, sandbox)) return sandbox;
  if (!ASLEEP.has(sandbox.status) || !(await wakesOnUse(context, sandbox))) requireLegal(action, sandbox.status);

  const watch = context.changes.watch(sandbox.id);
  const waiting = AbortSignal.any([signal, AbortSignal.timeout(waitMs)]);
  try {
    for (let asked = false; ;) {
      const now = await waitWhileInTransition(context, watch, await reread(context, sandbox), waiting);
      signal.throwIfAborted();
      if (isLegal(action, now)) return await reread(context, now);
      if (asked && now.status === 'stopped') throw notWoken(now);
      if (now.status !== 'stopped' || waiting.aborted) requireLegal(action, now.status);
      asked = true;
      await wakeUnlessOvertaken(context, actor, now, action);
    }
  } finally {
    watch.close();
  }
}

/** Starts a wake. A concurrent wake by another caller is equally good. */
async function wakeUnlessOvertaken(
  context: ServiceContext,
  actor: ActivityActor,
  sandbox: SandboxRow,
  action: SandboxAction,
): Promise<void> {
  try {
    await requestWake(context, actor, sandbox.id, { wakeOnUse: action });
  } catch (error) {
    const overtaken = error instanceof CodedError && error.code === 'wake_not_possible';
    if (!overtaken || (await reread(context, sandbox)).status === 'stopped') throw error;
  }
}

async function wakesOnUse(context: ServiceContext, sandbox: SandboxRow): Promise<boolean> {
  return (await findProject(context.db, sandbox.org_id, sandbox.project_id))?.wake_on_use === true;
}

function isLegal(action: SandboxAction, sandbox: SandboxRow): boolean {
  return SANDBOX_ACTION_RULES[action][sandbox.status] === 'do';
}

function notWoken(sandbox: SandboxRow): CodedError {
  const why = sandbox.status_reason_message ?? 'the sandbox was put to sleep again';
  return new CodedError(
    'sandbox_state_conflict',
    `the sandbox is ${sandbox.status}; the wake for this use failed: ${why}`,
  );
}

/** The sandbox's current row. */
export async function reread(context: ServiceContext, sandbox: SandboxRow): Promise<LocatedSandboxRow> {
  const now = await findSandbox(context.db, sandbox.id);
  if (now === undefined) throw new Error(`the row of ${sandbox.id} is gone`);
  return now;
}
