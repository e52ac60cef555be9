// Changes labels and idle time of a sandbox, in any status.
import type { UpdateSandboxBody } from '@berth/contract/sandboxes/update.ts';
import type { Actor } from '../../rules/access/access.ts';
import { canonicalJson } from '../../rules/canonical-json.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import type { SandboxRow } from '../../store/database/schema.ts';
import { writeSandboxLabels } from '../../store/sandboxes/sandboxes.ts';
import type { ServiceContext } from '../context/context.ts';
import { lockChangeable } from './intent.ts';

/** Throws `sandbox_state_conflict` for a sandbox that is deleted or being deleted. */
export async function updateSandbox(
  context: ServiceContext,
  actor: Actor,
  sandboxId: string,
  body: UpdateSandboxBody,
): Promise<SandboxRow> {
  return await context.db.transaction().execute(async (trx) => {
    const before = await lockChangeable(trx, sandboxId, 'it cannot be changed any more');
    const current = { name: before.name, metadata: before.metadata, idleMinutes: before.idle_minutes };
    const fields = (['name', 'metadata', 'idleMinutes'] as const).filter(
      (field) => body[field] !== undefined && canonicalJson(body[field]) !== canonicalJson(current[field]),
    );
    if (fields.length === 0) return before;
    const after = await writeSandboxLabels(trx, sandboxId, body);
    await insertActivity(trx, {
      orgId: after.org_id,
      projectId: after.project_id,
      sandboxId,
      actor,
      kind: 'sandbox_updated',
      details: { fields, ...(after.name === before.name ? {} : { name: after.name, formerName: before.name }) },
    });
    return after;
  });
}
