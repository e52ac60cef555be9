// The one transaction of every request that changes a sandbox's machine: its row locked, what is to
// become of it decided and written together with its durable step, and the step started right after
// the commit. What is legal and what it means is said by its callers, one file a verb.
import { CodedError } from '../../rules/coded-error.ts';
import { lockSandbox } from '../../store/sandboxes/sandboxes.ts';
import type { DatabaseTransaction, SandboxRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';

/** What it takes: workers have no more than that. */
export type IntentContext = Pick<ServiceContext, 'db' | 'lifecycle'>;

/** What was decided: the row as it is now, and whether a step was enqueued for its epoch. */
export interface Intent {
  sandbox: SandboxRow;
  enqueued: boolean;
}

/**
 * Runs `decide` with the sandbox's row locked, commits, and starts the step if there is one. Throws
 * what `decide` throws, and `sandbox_not_found`.
 */
export async function commitIntent(
  context: IntentContext,
  sandboxId: string,
  decide: (trx: DatabaseTransaction, before: SandboxRow) => Promise<Intent>,
): Promise<SandboxRow> {
  const { sandbox, enqueued } = await context.db.transaction().execute(async (trx) => {
    const before = await lockSandbox(trx, sandboxId);
    if (before === undefined) throw new CodedError('sandbox_not_found', 'there is no sandbox with the id in the path');
    return await decide(trx, before);
  });
  if (enqueued) context.lifecycle.started();
  return sandbox;
}
