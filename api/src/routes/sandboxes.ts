// Sandboxes on the wire: create, list, fetch, destroy.
import { profile } from '@berth/contract/machine-sizes.ts';
import { agent, persistencePolicy } from '@berth/contract/sandbox-fields.ts';
import { createSandbox, destroySandbox, getSandbox, listSandboxes, type Sandbox } from '@berth/contract/sandboxes.ts';
import * as sandboxes from '../services/sandboxes.ts';
import { bind } from './bind.ts';

export const sandboxRoutes = [
  bind(listSandboxes, async (context, { params, query }) => ({
    sandboxes: (await sandboxes.listSandboxes(context, params.orgId, query)).map(viewSandbox),
  })),
  bind(
    createSandbox,
    async (context, { actor, params, body, ...answer }) => ({
      sandbox: viewSandbox(await sandboxes.createSandbox(context, actor, params.orgId, body, answer)),
    }),
    { honoursRespondAsync: true },
  ),
  bind(getSandbox, (_context, { sandbox }) => Promise.resolve({ sandbox: viewSandbox(sandbox) })),
  bind(
    destroySandbox,
    async (context, { actor, params, ...answer }) => ({
      sandbox: viewSandbox(await sandboxes.destroySandbox(context, actor, params.sandboxId, answer)),
    }),
    { honoursRespondAsync: true },
  ),
];

function viewSandbox(row: sandboxes.SandboxRow): Sandbox {
  return {
    id: row.id,
    orgId: row.org_id,
    projectId: row.project_id,
    name: row.name,
    agent: agent.parse(row.agent),
    status: row.status,
    statusReason:
      row.status_reason_code === null
        ? null
        : { code: row.status_reason_code, message: row.status_reason_message ?? row.status_reason_code },
    statusChangedAt: row.status_changed_at.toISOString(),
    sandbox_profile: profile.parse(row.profile),
    allocated_vcpu: row.allocated_vcpu,
    allocated_memory_gb: row.allocated_memory_gb,
    allocated_disk_gb: row.allocated_disk_gb,
    ...viewPending(row),
    persistencePolicy: persistencePolicy.parse(row.persistence_policy),
    mode: row.mode === 'ephemeral' ? 'ephemeral' : 'persistent',
    repository: row.repository,
    branch: row.branch,
    endUserId: row.end_user_id,
    metadata: row.metadata,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
    deletedAt: row.deleted_at?.toISOString() ?? null,
  };
}

function viewPending(row: sandboxes.SandboxRow): Pick<Sandbox, 'pendingAllocation'> {
  const { pending_vcpu: vcpu, pending_memory_gb: memoryGb, pending_disk_gb: diskGb } = row;
  if (vcpu === null || memoryGb === null || diskGb === null) return {};
  return { pendingAllocation: { vcpu, memoryGb, diskGb } };
}
