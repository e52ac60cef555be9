// Sandboxes: list and destroy. Writes intent and enqueues the durable step in one transaction; the
// worker does the rest.
import type { PageQuery } from '@berth/contract/route/page.ts';
import { SANDBOX_ACTION_RULES } from '@berth/contract/sandboxes/state.ts';
import type { Actor } from '../../rules/access/access.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { readInPages, type PageFields } from '../../rules/page.ts';
import {
  listSandboxes as selectSandboxes,
  lockSandbox,
  type LocatedSandboxRow,
} from '../../store/sandboxes/sandboxes.ts';
import type { SandboxRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';
import { transitionSandbox } from './transition.ts';
import { waitUntilSettled, type TransitionAnswer } from './wait.ts';

export type { LocatedSandboxRow, SandboxRow, TransitionAnswer };

/** The org's sandboxes, newest first, without deleted ones; all or one page. */
export async function listSandboxes(
  context: ServiceContext,
  orgId: string,
  query: PageQuery & { endUserId?: string | undefined },
): Promise<{ rows: SandboxRow[]; fields: PageFields }> {
  return await readInPages('sandboxes', query, (page) => selectSandboxes(context.db, orgId, query, page));
}

/** Destroys a sandbox. Repeating it gives the same response and starts nothing. */
export async function destroySandbox(
  context: ServiceContext,
  actor: Actor,
  sandboxId: string,
  answer: TransitionAnswer,
): Promise<SandboxRow> {
  const watch = context.changes.watch(sandboxId);
  try {
    const { sandbox, started } = await context.db.transaction().execute(async (trx) => {
      const before = await lockSandbox(trx, sandboxId);
      if (before === undefined)
        throw new CodedError('sandbox_not_found', 'there is no sandbox with the id in the path');
      if (SANDBOX_ACTION_RULES.destroy[before.status] === 'done') return { sandbox: before, started: false };
      const result = await transitionSandbox(trx, {
        sandboxId,
        epoch: before.epoch,
        to: 'destroying',
        actor,
        newEpoch: true,
      });
      if (result.outcome !== 'changed') throw new Error(`a destroy from ${before.status} was ${result.outcome}`);
      await context.lifecycle.enqueue(trx, 'destroy', { sandboxId, epoch: result.sandbox.epoch });
      return { sandbox: result.sandbox, started: true };
    });
    if (started) context.lifecycle.started();
    return await waitUntilSettled(context, watch, sandbox, answer);
  } finally {
    watch.close();
  }
}
