// The single transaction of every request that changes a sandbox's VM: locks the row, decides,
// writes the intent with its durable step, and starts the step after the commit. Callers, one file
// per verb, define what is legal.
import { SANDBOX_ACTION_RULES } from '@berth/contract/sandboxes/state.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { lockSandbox } from '../../store/sandboxes/sandboxes.ts';
import type { DatabaseTransaction, SandboxRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';
import { transitionSandbox, type Transition } from './transition.ts';

/** The subset of the context that workers also have. */
export type IntentContext = Pick<ServiceContext, 'db' | 'lifecycle'>;

/** The decision: the row after it, and whether a step was enqueued for its epoch. */
export interface Intent {
  sandbox: SandboxRow;
  enqueued: boolean;
}

/**
 * Runs `decide` with the sandbox row locked, commits, and starts the step if any. Throws what
 * `decide` throws, and `sandbox_not_found`.
 */
export async function commitIntent(
  context: IntentContext,
  sandboxId: string,
  decide: (trx: DatabaseTransaction, before: SandboxRow) => Promise<Intent>,
): Promise<SandboxRow> {
  const { sandbox, enqueued } = await context.db.transaction().execute(async (trx) => {
    return await decide(trx, await lockExisting(trx, sandboxId));
  });
  if (enqueued) context.lifecycle.started();
  return sandbox;
}

/** Locks the row until the transaction ends. Throws `sandbox_not_found`. */
export async function lockExisting(trx: DatabaseTransaction, sandboxId: string): Promise<SandboxRow> {
  const sandbox = await lockSandbox(trx, sandboxId);
  if (sandbox === undefined) throw new CodedError('sandbox_not_found', 'there is no sandbox with this id');
  return sandbox;
}

/**
 * The same for a change of a property, which any status but a deletion allows. Throws
 * `sandbox_state_conflict`. @param why the change would have no effect, for the message
 */
export async function lockChangeable(trx: DatabaseTransaction, sandboxId: string, why: string): Promise<SandboxRow> {
  const sandbox = await lockExisting(trx, sandboxId);
  if (isEnding(sandbox)) throw new CodedError('sandbox_state_conflict', `the sandbox is ${sandbox.status}; ${why}`);
  return sandbox;
}

/** Deleted or being deleted. */
export function isEnding({ status }: Pick<SandboxRow, 'status'>): boolean {
  return SANDBOX_ACTION_RULES.destroy[status] === 'done';
}

/** Starts to destroy a sandbox that is not {@link isEnding}. Needs the row lock. */
export async function intendDestroy(
  { lifecycle }: Pick<IntentContext, 'lifecycle'>,
  trx: DatabaseTransaction,
  { id: sandboxId, epoch, status }: SandboxRow,
  about: Pick<Transition, 'actor' | 'kind' | 'details'>,
): Promise<Intent> {
  const result = await transitionSandbox(trx, { sandboxId, epoch, to: 'destroying', newEpoch: true, ...about });
  if (result.outcome !== 'changed') throw new Error(`a destroy from ${status} was ${result.outcome}`);
  await lifecycle.enqueue(trx, 'destroy', { sandboxId, epoch: result.sandbox.epoch });
  return { sandbox: result.sandbox, enqueued: true };
}
