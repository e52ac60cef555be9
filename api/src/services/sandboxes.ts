// Sandboxes: creating, listing and destroying them. Writes intent and enqueues the durable step in one transaction; the worker does the rest.
import { profile } from '@berth/contract/machine-sizes.ts';
import { persistencePolicy } from '@berth/contract/sandbox-fields.ts';
import { SANDBOX_ACTION_RULES } from '@berth/contract/sandbox-state.ts';
import { SANDBOX_FIELDS_NOT_AVAILABLE_YET, type CreateSandboxBody } from '@berth/contract/sandboxes.ts';
import type { Actor } from '../rules/access.ts';
import { chooseAllocation } from '../rules/allocation.ts';
import { CodedError } from '../rules/coded-error.ts';
import { refuseFieldsNotAvailable } from '../rules/not-available.ts';
import { insertActivity } from '../store/activity.ts';
import { isId, newId } from '../store/ids.ts';
import { findProject } from '../store/projects.ts';
import { insertSandbox, listSandboxes as selectSandboxes, lockSandbox, type LocatedSandboxRow } from '../store/sandboxes.ts';
import type { SandboxRow } from '../store/schema.ts';
import type { ServiceContext } from './context.ts';
import { reserveHost } from './placement.ts';
import { transitionSandbox } from './sandbox-transition.ts';
import { waitUntilSettled, type TransitionAnswer } from './sandbox-wait.ts';

export type { LocatedSandboxRow, SandboxRow, TransitionAnswer };

const FIRST_EPOCH = 1;

/** The org's sandboxes, newest first, without deleted ones. */
export async function listSandboxes(
  context: ServiceContext,
  orgId: string,
  filter: { endUserId?: string | undefined },
): Promise<SandboxRow[]> {
  return await selectSandboxes(context.db, orgId, filter);
}

/** Creates a sandbox. Throws `not_available_yet`, `unknown_project`, `insufficient_capacity` or `host_unavailable`, and then leaves no row. */
export async function createSandbox(
  context: ServiceContext,
  actor: Actor,
  orgId: string,
  body: CreateSandboxBody,
  answer: TransitionAnswer,
): Promise<SandboxRow> {
  refuseFieldsNotAvailable(body, SANDBOX_FIELDS_NOT_AVAILABLE_YET);
  const id = newId('sandbox');
  const step = { sandboxId: id, epoch: FIRST_EPOCH };
  const watch = context.changes.watch(id);
  try {
    const created = await context.db.transaction().execute(async (trx) => {
      const project = isId('project', body.projectId) ? await findProject(trx, orgId, body.projectId) : undefined;
      if (project === undefined) throw new CodedError('unknown_project', 'body.projectId names no project of this org');
      const chosen = chooseAllocation(body, {
        profile: profile.nullable().parse(project.default_profile),
        persistencePolicy: persistencePolicy.nullable().parse(project.default_persistence_policy),
      });
      const sandbox = await insertSandbox(trx, {
        id,
        org_id: orgId,
        project_id: project.id,
        host_id: await reserveHost(trx, chosen.allocation),
        created_by: actor.userId,
        name: body.name ?? `sandbox-${id.slice(4, 12)}`,
        agent: body.agent,
        status: 'provisioning',
        epoch: FIRST_EPOCH,
        profile: chosen.profile,
        persistence_policy: chosen.persistencePolicy,
        mode: 'persistent',
        end_user_id: body.endUserId ?? null,
        metadata: JSON.stringify(body.metadata ?? {}),
        allocated_vcpu: chosen.allocation.vcpu,
        allocated_memory_gb: chosen.allocation.memoryGb,
        allocated_disk_gb: chosen.allocation.diskGb,
      });
      await insertActivity(trx, {
        orgId,
        projectId: project.id,
        sandboxId: id,
        actor,
        kind: 'sandbox_created',
        details: { name: sandbox.name, endUserId: sandbox.end_user_id },
      });
      await context.lifecycle.enqueueProvision(trx, step);
      return sandbox;
    });
    context.lifecycle.started(step);
    return await waitUntilSettled(context, watch, created, answer);
  } finally {
    watch.close();
  }
}

/** Destroys a sandbox. One that is being destroyed, or is deleted, gives the same answer and starts nothing. */
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
      if (before === undefined) throw new CodedError('sandbox_not_found', 'there is no sandbox with the id in the path');
      if (SANDBOX_ACTION_RULES.destroy[before.status] === 'done') return { sandbox: before, started: false };
      const result = await transitionSandbox(trx, { sandboxId, epoch: before.epoch, to: 'destroying', actor, newEpoch: true });
      if (result.outcome !== 'changed') throw new Error(`a destroy from ${before.status} was ${result.outcome}`);
      await context.lifecycle.enqueueDestroy(trx, { sandboxId, epoch: result.sandbox.epoch });
      return { sandbox: result.sandbox, started: true };
    });
    if (started) context.lifecycle.started({ sandboxId, epoch: sandbox.epoch });
    return await waitUntilSettled(context, watch, sandbox, answer);
  } finally {
    watch.close();
  }
}
