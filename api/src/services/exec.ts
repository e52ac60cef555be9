// Runs a command in a sandbox: data plane, straight through the host, no queue. Decides by the state table and maps the host's errors.
import type { ExecResult } from '@berth/contract/exec.ts';
import { SANDBOX_ACTION_RULES, SANDBOX_STATES, statusesAllowing } from '@berth/contract/sandbox-state.ts';
import { HostError, type HostFailureCode } from '../hosts/error.ts';
import type { Actor } from '../rules/access.ts';
import { CodedError } from '../rules/coded-error.ts';
import { insertActivity } from '../store/activity.ts';
import { findSandbox, type LocatedSandboxRow } from '../store/sandboxes.ts';
import type { SandboxRow } from '../store/schema.ts';
import type { ServiceContext } from './context.ts';

const RETRY_AFTER_SECONDS = 2;

export interface ExecRequest {
  command: string;
  timeoutSeconds: number;
}

/**
 * Runs one command and resolves with its result, whatever its exit code. The signal ends the command's process group.
 * Throws `sandbox_state_conflict`, `sandbox_unreachable` or `host_unavailable`.
 */
export async function execInSandbox(
  context: ServiceContext,
  actor: Actor,
  sandbox: LocatedSandboxRow,
  request: ExecRequest,
  signal: AbortSignal,
): Promise<ExecResult> {
  requireAwake(sandbox);
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
  try {
    const result = await context.hosts
      .at(sandbox.host_url)
      .exec(sandbox.id, request, { signal: AbortSignal.any([signal, unrecorded.signal]) });
    await noted;
    return result;
  } catch (error) {
    await noted;
    if (error instanceof HostError) throw await explain(context, sandbox, error);
    throw error;
  }
}

function requireAwake(sandbox: SandboxRow): void {
  if (SANDBOX_ACTION_RULES.exec[sandbox.status] === 'do') return;
  const legal = statusesAllowing('exec').join(' or ');
  throw new CodedError(
    'sandbox_state_conflict',
    `the sandbox is ${sandbox.status} (${SANDBOX_STATES[sandbox.status].meaning}); a command needs it ${legal}`,
  );
}

type Unanswered = 'sandbox_unreachable' | 'host_unavailable';

/** What a failure of the host's call means to the caller; one that is not here is a fault of the service. */
const MEANINGS: { readonly [code in HostFailureCode]?: Unanswered } = {
  vm_not_found: 'sandbox_unreachable',
  vm_not_running: 'sandbox_unreachable',
  superseded: 'sandbox_unreachable',
  stale_epoch: 'sandbox_unreachable',
  guest_unreachable: 'sandbox_unreachable',
  host_unreachable: 'host_unavailable',
  host_timeout: 'host_unavailable',
  invalid_answer: 'host_unavailable',
  unauthorized: 'host_unavailable',
};
const WHO: { readonly [meaning in Unanswered]: string } = {
  sandbox_unreachable: "the sandbox's machine",
  host_unavailable: 'the host of the sandbox',
};

/** The failure as the caller is told it. The sandbox's row is read again: it may have changed while the command ran. */
async function explain(context: ServiceContext, sandbox: SandboxRow, error: HostError): Promise<Error> {
  const meaning = MEANINGS[error.code];
  if (meaning === undefined) return error;
  const now = await findSandbox(context.db, sandbox.id);
  if (now !== undefined) requireAwake(now);
  return new CodedError(meaning, `${WHO[meaning]} did not answer; the command may or may not have run`, {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    cause: error,
  });
}
