// Formats sandboxes for output.
import { SANDBOX_STATES, type SandboxData } from '@berth/sdk';
import type { Field } from '../output/fields.ts';
import type { Column } from '../output/table.ts';
import { plainText } from '../output/plain-text.ts';
import type { Style } from '../output/style.ts';
import { egressText } from './egress.ts';
import { duration, instant, since, instantSince, instantUntil } from '../output/time.ts';

interface Size {
  vcpu: number;
  memoryGb: number;
  diskGb: number;
}

/** `2 vCPU, 4 GB, 20 GB disk`. */
export function sizeText({ vcpu, memoryGb, diskGb }: Size): string {
  return `${vcpu} vCPU, ${memoryGb} GB, ${diskGb} GB disk`;
}

export function sizeOf(sandbox: SandboxData): Size {
  return { vcpu: sandbox.allocated_vcpu, memoryGb: sandbox.allocated_memory_gb, diskGb: sandbox.allocated_disk_gb };
}

export function statusStyle(status: string): Style | undefined {
  if (status === 'ready' || status === 'running') return 'green';
  if (status === 'failed') return 'red';
  return status === 'stopped' || status === 'deleted' ? 'dim' : 'yellow';
}

/** Columns of a list. */
export const SANDBOX_COLUMNS: readonly Column<SandboxData>[] = [
  { title: 'id', value: ({ id }) => id, whole: true },
  { title: 'name', value: ({ name }) => name, least: 8 },
  { title: 'status', value: ({ status }) => status, style: ({ status }) => statusStyle(status), least: 12 },
  { title: 'size', value: (sandbox) => sizeText(sizeOf(sandbox)), optional: true },
  { title: 'end user', value: ({ endUserId }) => endUserId, least: 8, optional: true },
  { title: 'created', value: ({ createdAt }) => since(createdAt), least: 9 },
];

/** Fields by importance. */
export function sandboxFields(sandbox: SandboxData): Field[] {
  const { status, statusReason, pendingAllocation, lastWake, clone } = sandbox;
  return [
    ['id', sandbox.id],
    ['name', sandbox.name],
    ['status', status, statusStyle(status)],
    ['reason', statusReason && reasonText(statusReason)],
    ['since', instantSince(sandbox.statusChangedAt)],
    ['wakes from', sandbox.wakesFrom],
    ['size', sizeText(sizeOf(sandbox))],
    ['pending size', pendingAllocation && sizeText(pendingAllocation)],
    ['profile', sandbox.sandbox_profile],
    ['agent', sandbox.agent],
    ['policy', sandbox.persistencePolicy],
    [
      'mode',
      sandbox.ttlSeconds === null ? sandbox.mode : `${sandbox.mode}, time to live ${duration(sandbox.ttlSeconds)}`,
    ],
    ['expires', sandbox.expiresAt && instantUntil(sandbox.expiresAt)],
    ['repository', sandbox.repository],
    ['branch', sandbox.branch],
    ['clone', clone && [clone.status, clone.reason && reasonText(clone.reason)].filter(Boolean).join(': ')],
    ['egress', egressText(sandbox.egress)],
    ['end user', sandbox.endUserId],
    ['key', sandbox.key === sandbox.endUserId ? null : sandbox.key],
    ['idle minutes', sandbox.idleMinutes],
    ...Object.entries(sandbox.metadata).map(([key, value]) => ['metadata', `${key}=${value}`] as const),
    ['last active', instantSince(sandbox.lastActiveAt)],
    [
      'last wake',
      lastWake &&
        `${instantSince(lastWake.at)} from ${lastWake.from}${lastWake.reason === null ? '' : `: ${lastWake.reason}`}`,
    ],
    ['project', sandbox.projectId],
    ['org', sandbox.orgId],
    ['created', instantSince(sandbox.createdAt)],
    ['deleted', sandbox.deletedAt && instant(sandbox.deletedAt)],
  ];
}

/** Result of an operation: the id first, for scripts. */
export function sandboxLine({ id, status }: SandboxData): string {
  return `${id} ${status}`;
}

export function reasonText({ code, message }: { code: string; message: string }): string {
  return `${message} (${code})`;
}

/** The status and the reason of the sandbox and of its clone. */
export function stateText({ id, status, statusReason, clone }: SandboxData): string {
  const reason = statusReason ?? (clone?.status === 'failed' ? clone.reason : null);
  return `${id} is ${plainText(status)}${reason === null ? '' : `: ${plainText(reasonText(reason))}`}`;
}

/** Rules of the status; undefined for a status of a later version. */
export function stateOf(status: string): { awake: boolean; settled: boolean } | undefined {
  return (SANDBOX_STATES as Readonly<Record<string, { awake: boolean; settled: boolean } | undefined>>)[status];
}
