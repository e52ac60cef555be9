// The single transaction of every request that changes a sandbox's VM: locks the row, decides,
// writes the intent with its durable step, and starts the step after the commit. Callers, one file
// per verb, define what is legal.
import { CodedError } from '../../rules/coded-error.ts';
import { lockSandbox } from '../../store/sandboxes/sandboxes.ts';
import type { DatabaseTransaction, SandboxRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';

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
    const before = await lockSandbox(trx, sandboxId);
    if (before === undefined) throw new CodedError('sandbox_not_found', 'there is no sandbox with this id');
    return await decide(trx, before);
  });
  if (enqueued) context.lifecycle.started();
  return sandbox;
}
