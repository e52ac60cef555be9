// Runs a command in a sandbox: data plane, directly through the host, without a queue. Wakes a
// stopped sandbox first if its project has wake-on-use.
import type { ExecResult } from '@berth/contract/commands/exec.ts';
import type { Actor } from '../../rules/access/access.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import type { LocatedSandboxRow } from '../../store/sandboxes/sandboxes.ts';
import { trackActivity } from '../sandboxes/activity-signal.ts';
import { environmentFor } from '../sandboxes/variables.ts';
import type { ServiceContext } from '../context/context.ts';
import { explainExecFailure } from '../hosts/command-failure.ts';
import { ensureAwake } from '../sandboxes/use.ts';

export interface ExecRequest {
  command: string;
  timeoutSeconds: number;
  cwd?: string | undefined;
  env?: Readonly<Record<string, string>> | undefined;
  user?: string | undefined;
  stdin?: string | undefined;
}

/**
 * Runs a command and resolves with its result, for any exit code. The signal kills the command's
 * process group. Throws `invalid_request`, `exec_options_unsupported`, `sandbox_state_conflict`,
 * `sandbox_unreachable` or `host_unavailable`, and the errors of a wake.
 */
export async function execInSandbox(
  context: ServiceContext,
  actor: Actor,
  sandbox: LocatedSandboxRow,
  request: ExecRequest,
  signal: AbortSignal,
): Promise<ExecResult> {
  const env = await environmentFor(context, sandbox, request.env);
  const inUse = await ensureAwake(context, actor, sandbox, { action: 'exec', signalOfUse: 'exec' }, signal);
  const noted = insertActivity(context.db, {
    orgId: inUse.org_id,
    projectId: inUse.project_id,
    sandboxId: inUse.id,
    actor,
    kind: 'sandbox_exec',
    details: { timeoutSeconds: request.timeoutSeconds },
  });
  // The activity row is written while the command runs; if that fails, the command is killed.
  const unrecorded = new AbortController();
  noted.catch((error: unknown) => unrecorded.abort(error));
  const use = trackActivity(context, inUse.id, 'exec');
  try {
    const result = await context.hosts
      .at(inUse.host_url)
      .exec(inUse.id, { ...request, env }, { signal: AbortSignal.any([signal, unrecorded.signal]) });
    await noted;
    return result;
  } catch (error) {
    await noted;
    throw await explainExecFailure(context, inUse.id, request, error);
  } finally {
    use.end();
  }
}
