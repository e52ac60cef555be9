// Creates a sandbox: decides its properties, counts it against the plan, reserves host capacity,
// and commits all with the durable step. With `getOrCreate`, an existing sandbox of the key is
// woken instead (wake-of-key.ts).
import { TRANSITION_WAIT_MS } from '@berth/contract/route/limits.ts';
import { OPEN_EGRESS } from '@berth/contract/sandboxes/egress-policy.ts';
import type { CreateSandboxBody } from '@berth/contract/sandboxes/sandboxes.ts';
import type { Actor } from '../../rules/access/access.ts';
import { chooseAllocation, type ChosenAllocation } from '../../rules/sandboxes/allocation.ts';
import { CodedError, invalidField } from '../../rules/coded-error.ts';
import { NEVER_MADE } from '../../rules/sandboxes/destroy-holds.ts';
import { requireSameFields, type KeyFields } from '../../rules/sandboxes/key-fields.ts';
import { requireConsistentMode, requireModeAllowed } from '../../rules/sandboxes/ephemeral.ts';
import { requireSizeWithinPlan, requireTtlWithinPlan } from '../../rules/billing/plan-limits.ts';
import { chooseRepository, requireRepositoryAllowed, type Repository } from '../../rules/clones/repository.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import { isId, newId } from '../../store/database/ids.ts';
import { lockProject, type ProjectRecord } from '../../store/orgs/projects.ts';
import {
  clearSandboxKey,
  findSandbox,
  findSandboxOfKey,
  insertSandbox,
  lockSandbox,
  lockSandboxKey,
} from '../../store/sandboxes/sandboxes.ts';
import type { DatabaseTransaction, SandboxRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';
import { requireOrgPermission } from '../access/access.ts';
import { claimIdempotencyKey } from './idempotency.ts';
import { withCapacity } from '../hosts/capacity-wait.ts';
import { reserveHost } from '../hosts/placement.ts';
import { planInForce, requireConcurrentRoom } from '../billing/plans.ts';
import { intendDestroy } from './intent.ts';
import { waitUntilSettled, type TransitionAnswer } from './wait.ts';
import { requireMachineHours } from '../usage/caps.ts';
import { hasEnded, wakeSandboxOfKey } from './wake-of-key.ts';

const FIRST_EPOCH = 1;

export interface CreateAnswer extends TransitionAnswer {
  /** The request's Idempotency-Key. */
  idempotencyKey?: string | undefined;
}

export interface CreateResult {
  sandbox: SandboxRow;
  /** An earlier create with the same key made the sandbox. */
  replayed: boolean;
}

/** Id of an existing sandbox: of an earlier create with this Idempotency-Key, or of this key. */
type Existing = { replayOf: string } | { keyOf: string };

/**
 * Creates a sandbox, or finds the one made by an earlier create with the same key. Throws
 * `invalid_request`, `idempotency_key_conflict`, `unknown_project`, `ephemeral_not_allowed`,
 * `no_active_plan`, `plan_limit`, `concurrent_sandbox_limit`, `machine_hour_limit`,
 * `insufficient_capacity`, `host_unavailable`, `sandbox_differs` or `sandbox_state_conflict`, and
 * then leaves nothing behind.
 */
export async function createSandbox(
  context: ServiceContext,
  actor: Actor,
  orgId: string,
  body: CreateSandboxBody,
  answer: CreateAnswer,
): Promise<CreateResult> {
  requireConsistentMode(body);
  if (body.getOrCreate !== undefined) {
    if (answer.idempotencyKey !== undefined)
      throw invalidField('body.getOrCreate', 'excludes the Idempotency-Key header; such a create can be repeated');
    await requireOrgPermission(context, actor, orgId, 'sandbox.wake');
  }
  const id = newId('sandbox');
  const step = { sandboxId: id, epoch: FIRST_EPOCH };
  const watch = context.changes.watch(id);
  // The waits for capacity and for the VM together take as long as one.
  const held = { ...answer, signal: AbortSignal.any([answer.signal, AbortSignal.timeout(TRANSITION_WAIT_MS)]) };
  try {
    const reserve = async (trx: DatabaseTransaction): Promise<SandboxRow | Existing> => {
      if (answer.idempotencyKey !== undefined) {
        const earlier = await claimIdempotencyKey(trx, { orgId, key: answer.idempotencyKey, body, sandboxId: id });
        if (earlier !== undefined) return { replayOf: earlier };
      }
      // Held until commit, so that the project is not deleted meanwhile.
      const project = isId('project', body.projectId)
        ? await lockProject(trx, orgId, body.projectId, 'stay')
        : undefined;
      if (project === undefined) throw new CodedError('unknown_project', 'body.projectId is not a project of this org');
      requireModeAllowed(body.mode, project.use_case);
      const chosen = chooseAllocation(body, {
        profile: project.default_profile,
        persistencePolicy: project.default_persistence_policy,
      });
      const repository = repositoryOf(context, body, project);
      const fields = keyFieldsOf({ project, body, chosen, repository });
      const keyed = await claimKey(context, trx, actor, { project, body, fields });
      if (keyed !== undefined) return { keyOf: keyed };
      const plan = await planInForce(context, trx, orgId);
      requireSizeWithinPlan(plan, chosen.allocation);
      if (body.ttlSeconds !== undefined) requireTtlWithinPlan(plan, body.ttlSeconds);
      await requireConcurrentRoom(context, trx, orgId);
      await requireMachineHours(context, trx, { orgId, projectId: project.id });
      const sandbox = await insertNew(trx, {
        id,
        project,
        actor,
        body,
        chosen,
        repository,
        fields,
        hostId: await reserveHost(trx, chosen.allocation),
      });
      await context.lifecycle.enqueue(trx, 'provision', step);
      return sandbox;
    };
    for (;;) {
      const created = await withCapacity(context, held, () => context.db.transaction().execute(reserve));
      if ('replayOf' in created) return { sandbox: await replay(context, created.replayOf, held), replayed: true };
      if ('keyOf' in created) {
        const sandbox = await wakeSandboxOfKey(context, actor, created.keyOf, held);
        // undefined: it ended since, and the next round creates its successor.
        if (sandbox !== undefined) return { sandbox, replayed: true };
        continue;
      }
      context.lifecycle.started();
      return { sandbox: await waitUntilSettled(context, watch, created, held), replayed: false };
    }
  } finally {
    watch.close();
  }
}

interface Choice {
  project: ProjectRecord;
  body: CreateSandboxBody;
  chosen: ChosenAllocation;
  repository: Repository | null;
}

interface NewlyChosen extends Choice {
  id: string;
  actor: Actor;
  fields: KeyFields;
  hostId: string;
}

function keyFieldsOf({ project, body, chosen, repository }: Choice): KeyFields {
  return {
    agent: body.agent,
    profile: chosen.profile,
    machineSize: chosen.machineSize,
    persistencePolicy: chosen.persistencePolicy,
    mode: body.mode ?? 'persistent',
    ttlSeconds: body.ttlSeconds ?? null,
    repository: repository?.repository ?? null,
    branch: repository?.branch ?? null,
    egress: body.egress ?? project.default_egress ?? OPEN_EGRESS,
    endUserId: body.endUserId ?? null,
    sshPublicKey: body.sshPublicKey ?? null,
  };
}

/**
 * Claims the key of `getOrCreate` until commit. Returns the id of its sandbox; undefined if this
 * create makes one, or has no key. Throws `sandbox_differs`.
 */
async function claimKey(
  context: ServiceContext,
  trx: DatabaseTransaction,
  actor: Actor,
  { project: { id: projectId }, body, fields }: Pick<NewlyChosen, 'project' | 'body' | 'fields'>,
): Promise<string | undefined> {
  if (body.getOrCreate === undefined) return undefined;
  const key = { projectId, key: body.getOrCreate.key };
  // Without the lock first: calls for a sandbox that exists do not wait for each other.
  let existing = await findSandboxOfKey(trx, key);
  if (existing === undefined || hasEnded(existing)) {
    await lockSandboxKey(trx, key);
    const { id } = (await findSandboxOfKey(trx, key)) ?? {};
    existing = id === undefined ? undefined : await lockSandbox(trx, id);
  }
  if (existing === undefined) return undefined;
  if (hasEnded(existing)) {
    if (existing.status === 'failed') await giveUpKey(context, trx, actor, existing);
    return undefined;
  }
  if (existing.key_fields === null) throw new Error(`the sandbox ${existing.id} has a key without fields`);
  requireSameFields(body, fields, { id: existing.id, fields: existing.key_fields });
  return existing.id;
}

/** Takes the key of a failed sandbox for its successor; deletes one that never ran. */
async function giveUpKey(
  context: ServiceContext,
  trx: DatabaseTransaction,
  actor: Actor,
  failed: SandboxRow,
): Promise<void> {
  if (NEVER_MADE.has(failed.status_reason_code ?? '')) await intendDestroy(context, trx, failed, { actor });
  else await clearSandboxKey(trx, failed.id);
}

/** Throws `invalid_request` for a repository that the service does not clone. */
function repositoryOf(context: ServiceContext, body: CreateSandboxBody, project: ProjectRecord): Repository | null {
  const chosen = chooseRepository(body, { repository: project.default_repository, branch: project.default_branch });
  const where = body.repository === undefined ? "the project's defaultRepository" : 'body.repository';
  if (chosen !== null) requireRepositoryAllowed(chosen.repository, context.settings.git, where);
  return chosen;
}

async function insertNew(
  trx: DatabaseTransaction,
  { id, project, actor, body, chosen, repository, fields, hostId }: NewlyChosen,
): Promise<SandboxRow> {
  const { egress } = fields;
  const sandbox = await insertSandbox(trx, {
    id,
    org_id: project.org_id,
    project_id: project.id,
    host_id: hostId,
    created_by: actor.userId,
    name: body.name ?? `sandbox-${id.slice(4, 12)}`,
    agent: body.agent,
    status: 'provisioning',
    epoch: FIRST_EPOCH,
    profile: chosen.profile,
    persistence_policy: chosen.persistencePolicy,
    mode: fields.mode,
    ttl_seconds: fields.ttlSeconds,
    repository: fields.repository,
    branch: fields.branch,
    clone_status: repository === null ? null : 'pending',
    egress: JSON.stringify(egress),
    egress_revision: egress.mode === 'open' ? 0 : 1,
    end_user_id: fields.endUserId,
    ...(body.getOrCreate === undefined ? {} : { key: body.getOrCreate.key, key_fields: JSON.stringify(fields) }),
    ssh_public_key: fields.sshPublicKey,
    idle_minutes: body.idleMinutes ?? null,
    metadata: JSON.stringify(body.metadata ?? {}),
    allocated_vcpu: chosen.allocation.vcpu,
    allocated_memory_gb: chosen.allocation.memoryGb,
    allocated_disk_gb: chosen.allocation.diskGb,
  });
  await insertActivity(trx, {
    orgId: project.org_id,
    projectId: project.id,
    sandboxId: id,
    actor,
    kind: 'sandbox_created',
    details: {
      name: sandbox.name,
      endUserId: sandbox.end_user_id,
      ...(repository === null ? {} : repository),
      ...(sandbox.mode === 'ephemeral' ? { mode: sandbox.mode, expiresAt: sandbox.expires_at } : {}),
    },
  });
  return sandbox;
}

/** An earlier create's sandbox as it is now. Waits as that create does, which may still run. */
async function replay(context: ServiceContext, sandboxId: string, answer: TransitionAnswer): Promise<SandboxRow> {
  const watch = context.changes.watch(sandboxId);
  try {
    const sandbox = await findSandbox(context.db, sandboxId);
    if (sandbox === undefined) throw new Error(`an idempotency key maps to the missing sandbox ${sandboxId}`);
    return await waitUntilSettled(context, watch, sandbox, answer);
  } finally {
    watch.close();
  }
}
