// Sandboxes: list, count and destroy. A destroy writes intent and enqueues the durable step in one
// transaction; the worker does the rest.
import type { SandboxSort } from '@berth/contract/sandboxes/list.ts';
import type { StartDelay } from '@berth/contract/sandboxes/sandboxes.ts';
import type { PageQuery } from '@berth/contract/route/page.ts';
import type { Actor } from '../../rules/access/access.ts';
import { readInPages, type PageFields } from '../../rules/page.ts';
import {
  countSandboxes as selectCounts,
  listSandboxes as selectSandboxes,
  type SandboxFilter,
} from '../../store/sandboxes/list.ts';
import { findVmSupply } from '../../store/hosts/hosts.ts';
import type { LocatedSandboxRow } from '../../store/sandboxes/sandboxes.ts';
import type { SandboxRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';
import { commitIntent, intendDestroy, isEnding } from './intent.ts';
import { waitUntilSettled, type TransitionAnswer } from './wait.ts';

export type { LocatedSandboxRow, SandboxRow, TransitionAnswer };

/** A cursor belongs to the column of its order. */
const ORDERS = {
  createdAt: { list: 'sandboxes', at: 'created_at', direction: 'asc' },
  '-createdAt': { list: 'sandboxes', at: 'created_at', direction: 'desc' },
  lastActiveAt: { list: 'activeSandboxes', at: 'last_active_at', direction: 'asc' },
  '-lastActiveAt': { list: 'activeSandboxes', at: 'last_active_at', direction: 'desc' },
} as const satisfies Record<SandboxSort, unknown>;

/** The org's sandboxes without deleted ones, filtered and ordered; all or one page. */
export async function listSandboxes(
  context: ServiceContext,
  orgId: string,
  { sort = '-createdAt', ...query }: PageQuery & SandboxFilter & { sort?: SandboxSort | undefined },
): Promise<{ rows: SandboxRow[]; fields: PageFields }> {
  return await readInPages(ORDERS[sort].list, query, (page) =>
    selectSandboxes(context.db, orgId, query, { ...ORDERS[sort], page }),
  );
}

/** Counts of the org's sandboxes without deleted ones. */
export async function countSandboxes(
  context: ServiceContext,
  orgId: string,
  filter: SandboxFilter,
): Promise<{ total: number; byStatus: Record<string, number> }> {
  const byStatus = await selectCounts(context.db, orgId, filter);
  return { total: Object.values(byStatus).reduce((sum, count) => sum + count, 0), byStatus };
}

/** Known causes of a slow start, by the last report of the host; undefined for other statuses. */
export async function startDelaysOf(
  { db }: ServiceContext,
  { status, host_id: hostId }: SandboxRow,
): Promise<StartDelay[] | undefined> {
  if (hostId === null || (status !== 'provisioning' && status !== 'waking')) return undefined;
  const supply = await findVmSupply(db, hostId);
  const delays: StartDelay[] = supply?.accelerator === 'tcg' ? ['emulation'] : [];
  return status === 'provisioning' && supply?.pool_ready === 0 ? [...delays, 'no_warm_vm'] : delays;
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
    const sandbox = await commitIntent(context, sandboxId, async (trx, before) =>
      isEnding(before) ? { sandbox: before, enqueued: false } : await intendDestroy(context, trx, before, { actor }),
    );
    return await waitUntilSettled(context, watch, sandbox, answer);
  } finally {
    watch.close();
  }
}
