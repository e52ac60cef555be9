// Runs a command in a sandbox: data plane, straight through the host, no queue. A stopped sandbox is woken first where its project says so.
import type { ExecResult } from '@berth/contract/exec.ts';
import type { Actor } from '../rules/access.ts';
import { insertActivity } from '../store/activity.ts';
import type { LocatedSandboxRow } from '../store/sandboxes.ts';
import { holdActivity, noteActivity } from './activity-signal.ts';
import type { ServiceContext } from './context.ts';
import { explainHostFailure } from './host-failure.ts';
import { awakeForUse, reread } from './wake-on-use.ts';

export interface ExecRequest {
  command: string;
  timeoutSeconds: number;
}

/**
 * Runs one command and resolves with its result, whatever its exit code. The signal ends the command's process group.
 * Throws `sandbox_state_conflict`, `sandbox_unreachable` or `host_unavailable`, and where it wakes the sandbox, what a wake throws.
 */
export async function execInSandbox(
  context: ServiceContext,
  actor: Actor,
  sandbox: LocatedSandboxRow,
  request: ExecRequest,
  signal: AbortSignal,
): Promise<ExecResult> {
  const awake = await awakeForUse(context, actor, sandbox, 'exec', signal);
  // Before the command: whoever is about to put it to sleep for being idle finds this sign of use, or this finds that it fell asleep.
  if (await noteActivity(context, awake, 'exec')) return await run(context, actor, awake, request, signal);
  return await run(context, actor, await awakeForUse(context, actor, await reread(context, awake), 'exec', signal), request, signal);
}

async function run(
  context: ServiceContext,
  actor: Actor,
  sandbox: LocatedSandboxRow,
  request: ExecRequest,
  signal: AbortSignal,
): Promise<ExecResult> {
  if (sandbox.host_url === null) throw new Error(`sandbox ${sandbox.id} is ${sandbox.status} without a host`);
  const noted = insertActivity(context.db, {
    orgId: sandbox.org_id,
    projectId: sandbox.project_id,
    sandboxId: sandbox.id,
    actor,
    kind: 'sandbox_exec',
    details: { timeoutSeconds: request.timeoutSeconds },
  });
  // The row is written while the command runs; when it cannot be, the command ends.
  const unrecorded = new AbortController();
  noted.catch((error: unknown) => unrecorded.abort(error));
  const use = holdActivity(context, sandbox.id, 'exec');
  try {
    const result = await context.hosts
      .at(sandbox.host_url)
      .exec(sandbox.id, request, { signal: AbortSignal.any([signal, unrecorded.signal]) });
    await noted;
    return result;
  } catch (error) {
    await noted;
    throw await explainHostFailure(context, sandbox.id, 'exec', error, '; the command may or may not have run');
  } finally {
    use.end();
  }
}
