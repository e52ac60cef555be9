// Converts a sandbox row to the wire format.
import { SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import type { Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import type { SandboxRow } from '../../services/sandboxes/sandboxes.ts';

export function viewSandbox(row: SandboxRow): Sandbox {
  return {
    id: row.id,
    orgId: row.org_id,
    projectId: row.project_id,
    name: row.name,
    agent: row.agent,
    status: row.status,
    statusReason:
      row.status_reason_code === null
        ? null
        : { code: row.status_reason_code, message: row.status_reason_message ?? row.status_reason_code },
    statusChangedAt: row.status_changed_at.toISOString(),
    sandbox_profile: row.profile,
    allocated_vcpu: row.allocated_vcpu,
    allocated_memory_gb: row.allocated_memory_gb,
    allocated_disk_gb: row.allocated_disk_gb,
    ...viewPending(row),
    resizing: row.resizing,
    persistencePolicy: row.persistence_policy,
    mode: row.mode === 'ephemeral' ? 'ephemeral' : 'persistent',
    ttlSeconds: row.ttl_seconds,
    expiresAt: row.expires_at?.toISOString() ?? null,
    wakesFrom: row.wakes_from,
    lastWake:
      row.last_wake_at === null || row.last_wake_from === null
        ? null
        : { at: row.last_wake_at.toISOString(), from: row.last_wake_from, reason: row.last_wake_reason },
    lastActiveAt: row.last_active_at.toISOString(),
    lastActiveBy: row.last_active_by,
    repository: row.repository,
    branch: row.branch,
    clone: viewClone(row),
    egress: row.egress,
    endUserId: row.end_user_id,
    key: row.key,
    metadata: row.metadata,
    idleMinutes: row.idle_minutes,
    createdBy: row.created_by,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
    deletedAt: row.deleted_at?.toISOString() ?? null,
  };
}

function viewClone(row: SandboxRow): Sandbox['clone'] {
  if (row.clone_status === null) return null;
  const { clone_reason_code: code, clone_reason_message: message } = row;
  return {
    status: row.clone_status === 'pending' && SANDBOX_STATES[row.status].awake ? 'cloning' : row.clone_status,
    reason: code === null ? null : { code, message: message ?? code },
  };
}

function viewPending(row: SandboxRow): Pick<Sandbox, 'pendingAllocation'> {
  const { pending_vcpu: vcpu, pending_memory_gb: memoryGb, pending_disk_gb: diskGb } = row;
  if (vcpu === null || memoryGb === null || diskGb === null) return {};
  return { pendingAllocation: { vcpu, memoryGb, diskGb } };
}
