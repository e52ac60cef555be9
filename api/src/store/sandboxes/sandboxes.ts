// Rows of sandboxes. SQL only; the contract's state table defines legal transitions, enforced by
// services/sandboxes/transition.ts.
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import type { EgressBody } from '@berth/contract/sandboxes/egress-policy.ts';
import type { SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import type { UpdateSandboxBody } from '@berth/contract/sandboxes/update.ts';
import { sql, type UpdateObject } from 'kysely';
import { CHANGES_CHANNEL } from '../database/changes.ts';
import type { Database, DatabaseTransaction, NewSandbox, SandboxRow, Tables } from '../database/schema.ts';

/**
 * Inserts a sandbox. An ephemeral sandbox expires its time to live after `created_at` (now()),
 * unless an expiry is given.
 */
export async function insertSandbox(db: Database, sandbox: NewSandbox): Promise<SandboxRow> {
  const { ttl_seconds: ttlSeconds = null, expires_at: said } = sandbox;
  const expiry =
    ttlSeconds === null || said !== undefined
      ? {}
      : { expires_at: sql<Date>`now() + make_interval(secs => ${ttlSeconds})` };
  return await db
    .insertInto('sandbox')
    .values({ ...sandbox, ...expiry })
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** A sandbox with the address of its VM's host; null before a host is chosen. */
export type LocatedSandboxRow = SandboxRow & { host_url: string | null };

export async function findSandbox(db: Database, sandboxId: string): Promise<LocatedSandboxRow | undefined> {
  return await db
    .selectFrom('sandbox')
    .leftJoin('host', 'host.id', 'sandbox.host_id')
    .selectAll('sandbox')
    .select('host.url as host_url')
    .where('sandbox.id', '=', sandboxId)
    .executeTakeFirst();
}

/** Key of `getOrCreate` and its project. */
interface SandboxKey {
  projectId: string;
  key: string;
}

/** The sandbox of the key; undefined without one that is not being destroyed. */
export async function findSandboxOfKey(db: Database, { projectId, key }: SandboxKey): Promise<SandboxRow | undefined> {
  return await db
    .selectFrom('sandbox')
    .selectAll()
    .where('project_id', '=', projectId)
    .where('key', '=', key)
    .where('status', 'not in', ['destroying', 'deleted'])
    .executeTakeFirst();
}

/** Makes other creates of the key wait until the transaction ends. */
export async function lockSandboxKey(trx: DatabaseTransaction, { projectId, key }: SandboxKey): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`berth:sandbox-key:${projectId}:${key}`}, 0))`.execute(trx);
}

/** Takes the key of a sandbox, for its successor. Needs the row lock. */
export async function clearSandboxKey(trx: DatabaseTransaction, sandboxId: string): Promise<SandboxRow> {
  return await writeSandbox(trx, sandboxId, { key: null, key_fields: null });
}

/** Writes labels and idle time. Needs the row lock. */
export async function writeSandboxLabels(
  trx: DatabaseTransaction,
  sandboxId: string,
  { name, metadata, idleMinutes }: UpdateSandboxBody,
): Promise<SandboxRow> {
  return await writeSandbox(trx, sandboxId, {
    ...(name === undefined ? {} : { name }),
    ...(metadata === undefined ? {} : { metadata: JSON.stringify(metadata) }),
    ...(idleMinutes === undefined ? {} : { idle_minutes: idleMinutes }),
  });
}

/** Locks the row until the transaction ends. */
export async function lockSandbox(trx: DatabaseTransaction, sandboxId: string): Promise<SandboxRow | undefined> {
  return await trx.selectFrom('sandbox').selectAll().where('id', '=', sandboxId).forUpdate().executeTakeFirst();
}

type SandboxColumns = UpdateObject<Tables, 'sandbox'>;

/** The allocation in force. */
export function allocationOf(
  row: Pick<SandboxRow, 'allocated_vcpu' | 'allocated_memory_gb' | 'allocated_disk_gb'>,
): Allocation {
  return { vcpu: row.allocated_vcpu, memoryGb: row.allocated_memory_gb, diskGb: row.allocated_disk_gb };
}

/**
 * The allocation stored for the next wake, or the target of a resize in progress; null for none.
 */
export function pendingOf(row: SandboxRow): Allocation | null {
  const { pending_vcpu: vcpu, pending_memory_gb: memoryGb, pending_disk_gb: diskGb } = row;
  return vcpu === null || memoryGb === null || diskGb === null ? null : { vcpu, memoryGb, diskGb };
}

/** The egress policy as its host gets it. */
export function egressOf({ egress, egress_revision: revision }: SandboxRow): EgressBody & { revision: number } {
  return { revision, ...egress };
}

/** State from which a wake can start. */
export type WakeSource = 'snapshot' | 'disk';

/** Size columns that change with a status or alone. Absent fields stay unchanged. */
export interface SizeChange {
  /** Allocation verified in the guest. */
  allocated?: Allocation | undefined;
  /** Allocation from the next wake on; null clears it. */
  pending?: Allocation | null | undefined;
}

interface StatusChange extends SizeChange {
  sandboxId: string;
  epoch: number;
  status: SandboxStatus;
  reason: { code: string; message: string } | null;
  wakesFrom: WakeSource | null;
  /** The step that begins resizes to the pending allocation. */
  resizing?: boolean | undefined;
  /** Source of a successful wake; `reason`: why it was not the snapshot. */
  woke?: { from: WakeSource; reason: string | null } | undefined;
  /** Reservation on its host from the start of a destroy. */
  destroyHolds: SandboxRow['destroy_holds'];
  /** The sandbox becomes awake, which counts as a sign of use. */
  active: boolean;
}

/** Writes status and epoch, and notifies every replica at commit. Needs the row lock. */
export async function writeSandboxStatus(trx: DatabaseTransaction, change: StatusChange): Promise<SandboxRow> {
  return await writeSandbox(trx, change.sandboxId, {
    status: change.status,
    epoch: change.epoch,
    status_reason_code: change.reason?.code ?? null,
    status_reason_message: change.reason?.message ?? null,
    status_changed_at: sql<Date>`now()`,
    wakes_from: change.wakesFrom,
    resizing: change.resizing ?? false,
    destroy_holds: change.destroyHolds,
    ...sizeColumns(change),
    ...(change.woke === undefined
      ? {}
      : { last_wake_at: sql<Date>`now()`, last_wake_from: change.woke.from, last_wake_reason: change.woke.reason }),
    ...(change.active ? { last_active_at: sql<Date>`now()`, last_active_by: null } : {}),
    ...(change.status === 'deleted' ? { deleted_at: sql<Date>`now()` } : {}),
  });
}

/** Writes sizes and `resizing`, and notifies every replica. Needs the row lock. */
export async function writeSandboxSize(
  trx: DatabaseTransaction,
  sandboxId: string,
  change: SizeChange & { epoch: number; resizing: boolean },
): Promise<SandboxRow> {
  return await writeSandbox(trx, sandboxId, { epoch: change.epoch, resizing: change.resizing, ...sizeColumns(change) });
}

/** Writes wake source and, if given, reason of a VM that is not running. Needs the row lock. */
export async function writeSandboxRemains(
  trx: DatabaseTransaction,
  sandboxId: string,
  remains: { wakesFrom: WakeSource | null; reason?: { code: string; message: string } | undefined },
): Promise<SandboxRow> {
  return await writeSandbox(trx, sandboxId, {
    wakes_from: remains.wakesFrom,
    ...(remains.reason === undefined
      ? {}
      : { status_reason_code: remains.reason.code, status_reason_message: remains.reason.message }),
  });
}

/**
 * Writes a sample's recommendation as the pending allocation, or clears it, and notifies every
 * replica. The caller holds the row lock.
 */
export async function writeRecommendation(
  trx: DatabaseTransaction,
  sandboxId: string,
  pending: Allocation | null,
): Promise<SandboxRow> {
  return await writeSandbox(trx, sandboxId, { ...sizeColumns({ pending }), pending_recommended: pending !== null });
}

/** Writes the egress policy under the next revision. Needs the row lock. */
export async function writeSandboxEgress(
  trx: DatabaseTransaction,
  { id, egress_revision: revision }: SandboxRow,
  egress: EgressBody,
): Promise<SandboxRow> {
  return await writeSandbox(trx, id, { egress: JSON.stringify(egress), egress_revision: revision + 1 });
}

/** Writes the epoch of the clone's step, and notifies every replica. Needs the row lock. */
export async function writeCloneEpoch(trx: DatabaseTransaction, sandboxId: string, epoch: number): Promise<SandboxRow> {
  return await writeSandbox(trx, sandboxId, { clone_epoch: epoch });
}

/**
 * Writes the result of the clone, with `reason` for a failure, and notifies every replica. The
 * caller holds the row lock.
 */
export async function writeCloneEnd(
  trx: DatabaseTransaction,
  sandboxId: string,
  reason: { code: string; message: string } | null,
): Promise<SandboxRow> {
  return await writeSandbox(trx, sandboxId, {
    clone_status: reason === null ? 'cloned' : 'failed',
    clone_reason_code: reason?.code ?? null,
    clone_reason_message: reason?.message ?? null,
  });
}

async function writeSandbox(trx: DatabaseTransaction, sandboxId: string, columns: SandboxColumns): Promise<SandboxRow> {
  const row = await trx
    .updateTable('sandbox')
    .set({ ...columns, updated_at: sql<Date>`now()` })
    .where('id', '=', sandboxId)
    .returningAll()
    .executeTakeFirstOrThrow();
  await sql`select pg_notify(${CHANGES_CHANNEL}, ${sandboxId})`.execute(trx);
  return row;
}

function sizeColumns({ allocated, pending }: SizeChange): SandboxColumns {
  return {
    ...(allocated === undefined
      ? {}
      : {
          allocated_vcpu: allocated.vcpu,
          allocated_memory_gb: allocated.memoryGb,
          allocated_disk_gb: allocated.diskGb,
        }),
    ...(pending === undefined
      ? {}
      : {
          pending_vcpu: pending?.vcpu ?? null,
          pending_memory_gb: pending?.memoryGb ?? null,
          pending_disk_gb: pending?.diskGb ?? null,
          pending_recommended: false,
        }),
  };
}
