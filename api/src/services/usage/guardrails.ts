// Guardrails on machine hours set by org admins. rules/usage/caps.ts defines them; caps.ts applies
// them.
import type {
  ProjectUsageGuardrails,
  UpdateProjectUsageGuardrailsBody,
  UpdateUsageGuardrailsBody,
  UsageGuardrails,
} from '@berth/contract/usage/guardrails.ts';
import type { Actor } from '../../rules/access/access.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { effectiveCap } from '../../rules/usage/caps.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import { lockProject, updateProject } from '../../store/orgs/projects.ts';
import { lockSubscription } from '../../store/billing/subscriptions.ts';
import { writeGuardrails } from '../../store/usage/caps.ts';
import type { ServiceContext } from '../context/context.ts';
import { inForce } from '../billing/plans.ts';
import { guardrailsOf } from './caps.ts';

/**
 * Sets the org's cap and its overage setting; absent fields stay. Writes nothing if nothing
 * differs. From the response on, it applies to creates, wakes and awake sandboxes. Throws
 * `no_active_plan`.
 */
export async function updateOrgGuardrails(
  context: ServiceContext,
  actor: Actor,
  orgId: string,
  body: UpdateUsageGuardrailsBody,
): Promise<UsageGuardrails> {
  return await context.db.transaction().execute(async (trx) => {
    const { plan, subscription: before } = inForce(context.plans, await lockSubscription(trx, orgId));
    const was = { limit: before.machine_hour_limit, overageEnabled: before.overage_enabled };
    const { sandboxMachineHourLimit: limit = was.limit, sandboxOverageEnabled: overageEnabled = was.overageEnabled } =
      body;
    const changes = {
      ...(limit === was.limit ? {} : { sandboxMachineHourLimit: { from: was.limit, to: limit } }),
      ...(overageEnabled === was.overageEnabled
        ? {}
        : { sandboxOverageEnabled: { from: was.overageEnabled, to: overageEnabled } }),
    };
    if (Object.keys(changes).length === 0) return view({ plan, ...was });
    const subscription = await writeGuardrails(trx, orgId, { limit, overageEnabled });
    await insertActivity(trx, { orgId, actor, kind: 'usage_guardrails_updated', details: { changes } });
    return view(guardrailsOf({ plan, subscription }));
  });
}

/** Sets or removes (null) a project's own cap, if it differs. Throws `project_not_found`. */
export async function updateProjectGuardrails(
  context: ServiceContext,
  actor: Actor,
  { orgId, projectId }: { orgId: string; projectId: string },
  { sandboxMachineHourLimit: limit }: UpdateProjectUsageGuardrailsBody,
): Promise<ProjectUsageGuardrails> {
  return await context.db.transaction().execute(async (trx) => {
    const before = await lockProject(trx, orgId, projectId, 'change');
    // Deleted concurrently, after the access decision.
    if (before === undefined) throw new CodedError('project_not_found', 'there is no project with this id');
    const was = before.sandbox_machine_hour_limit;
    if (limit === was) return { sandboxMachineHourLimit: limit };
    // Serialised with the creates and wakes that check a cap (caps.ts).
    await lockSubscription(trx, orgId);
    await updateProject(trx, projectId, { sandbox_machine_hour_limit: limit });
    const changes = { sandboxMachineHourLimit: { from: was, to: limit } };
    await insertActivity(trx, { orgId, projectId, actor, kind: 'usage_guardrails_updated', details: { changes } });
    return { sandboxMachineHourLimit: limit };
  });
}

function view(guardrails: Parameters<typeof effectiveCap>[0]): UsageGuardrails {
  return {
    includedMachineHours: guardrails.plan.includedMachineHours,
    sandboxMachineHourLimit: effectiveCap(guardrails),
    sandboxMachineHourLimitOverride: guardrails.limit,
    sandboxOverageEnabled: guardrails.overageEnabled,
  };
}
