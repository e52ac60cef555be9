// `berth sandbox create` and `ensure`: create a sandbox, or find and wake the one of a key, and
// wait until it is ready. Report the id even if the wait fails.
import { BerthError, type CreateOptions, type Sandbox, type SandboxData, type SandboxSpec } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { CliFailure, UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import type { Input } from '../program/command-spec.ts';
import { sandboxSpec, type SandboxOptions } from './create-body.ts';
import { reasonText, sandboxFields, stateOf, stateText } from './view.ts';

export type CreateInput = SandboxOptions & { idempotencyKey?: string; wait: boolean };
type EnsureInput = SandboxOptions & { key?: string; wait: boolean };

/**
 * Without a terminal, prints only the id, even after a failed clone: the caller has a sandbox to
 * delete.
 */
export async function createSandbox(context: CliContext, { options }: Input<CreateInput>): Promise<void> {
  const spec = await sandboxSpec(options);
  const data = await context.out.step(
    'creating the sandbox',
    async (report) => await makeSandbox(context, spec, options, report),
  );
  show(context, data);
}

/** As {@link createSandbox}, for the sandbox of a key or end user. Fails if it cannot be woken. */
export async function ensureSandbox(context: CliContext, { options }: Input<EnsureInput>): Promise<void> {
  const { key = options.endUser, wait } = options;
  if (key === undefined) throw new UsageError('no key given: use --end-user or --key');
  const { connect, out, signal } = context;
  const spec = { ...(await sandboxSpec(options)), key };
  const data = await out.step('finding or creating the sandbox', async (report) => {
    const { berth, orgId, projectId } = await connect();
    const call = { orgId: await orgId(), wait: false, signal };
    const sandbox = await berth.sandboxes.getOrCreate({ ...spec, projectId: await projectId() }, call);
    return wait ? await untilThere(sandbox, signal, report) : sandbox.data;
  });
  if (wait && stateOf(data.status)?.awake !== true)
    throw new CliFailure(stateText(data), { remedy: 'repeat the command' });
  show(context, data);
}

function show({ out, stdout }: CliContext, data: SandboxData): void {
  if (out.json) out.object({ sandbox: data });
  else if (stdout.isTTY) out.fields(sandboxFields(data).filter(([name]) => SHOWN.has(name)));
  else out.line(data.id);
  if (data.clone?.status === 'failed') {
    const why = data.clone.reason === null ? '' : `: ${plainText(reasonText(data.clone.reason))}`;
    out.note(`berth: the repository was not cloned${why}`);
    out.hint(`  berth logs ${data.id} shows git's output`);
  }
}

const SHOWN: ReadonlySet<string> = new Set([
  'id',
  'name',
  'status',
  'size',
  'expires',
  'repository',
  'branch',
  'clone',
]);

/** Resolves when the sandbox is awake and the clone finished or failed; without `wait`, at once. */
export async function makeSandbox(
  { connect, out, signal }: CliContext,
  spec: SandboxSpec,
  { idempotencyKey, wait }: Pick<CreateInput, 'idempotencyKey' | 'wait'>,
  report: (note: string) => void,
): Promise<SandboxData> {
  const { berth, orgId, projectId } = await connect();
  const where = { projectId: await projectId() };
  const call: CreateOptions = {
    orgId: await orgId(),
    wait: false,
    signal,
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  };
  let sandbox;
  try {
    sandbox = await berth.sandboxes.create({ ...spec, ...where }, call);
  } catch (error) {
    if (signal.aborted) out.hint('berth: the sandbox may still be created; check with berth sandbox ls');
    throw lost(error, signal);
  }
  const { id } = sandbox;
  if (!wait) return sandbox.data;
  return await untilThere(sandbox, signal, report, () => {
    // The service continues the create.
    out.hint(`berth: ${id} may still be created; delete it with berth sandbox rm ${id}`);
  });
}

/**
 * Resolves when the sandbox is awake and the clone finished or failed. @param unknown called if the
 * wait fails
 */
export async function untilThere(
  sandbox: Sandbox,
  signal: AbortSignal,
  report: (note: string) => void,
  unknown?: () => void,
): Promise<SandboxData> {
  const { id } = sandbox;
  try {
    report(`${id} is ${sandbox.status}`);
    await sandbox.waitUntil(
      ({ status }) => {
        report(`${id} is ${status}`);
        return isSettled(status);
      },
      { signal, timeoutMs: TIMEOUT_MS },
    );
    if (isCloning(sandbox.data)) {
      report(`${id} is cloning its repository`);
      await sandbox.waitUntil((now) => !isCloning(now), { signal, timeoutMs: TIMEOUT_MS });
    }
  } catch (error) {
    unknown?.();
    throw error;
  }
  const { status, statusReason } = sandbox.data;
  if (status !== 'failed' && status !== 'deleted') return sandbox.data;
  throw new CliFailure(`${id} ${status}${statusReason === null ? '' : `: ${plainText(reasonText(statusReason))}`}`, {
    remedy: `berth logs ${id} shows why; berth sandbox rm ${id} deletes it`,
  });
}

/** Long enough to clone a large repository. */
const TIMEOUT_MS = 900_000;

/** Reports whether no transition is in progress. Unknown statuses count as settled. */
function isSettled(status: string): boolean {
  return stateOf(status)?.settled ?? true;
}

/** Reports whether an awake sandbox still clones its repository. */
function isCloning({ status, clone }: SandboxData): boolean {
  return status === 'running' && (clone?.status === 'pending' || clone?.status === 'cloning');
}

/** Adds a remedy to a lost response: whether the sandbox was created is unknown. */
function lost(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted || !(error instanceof BerthError) || error.status !== undefined || error.unsent) return error;
  if (error.code !== 'connection_failed' && error.code !== 'timeout') return error;
  return new CliFailure(`${plainText(error.message)} (${error.code})`, {
    remedy:
      'check with berth sandbox ls; ' +
      'with --idempotency-key KEY the command can be repeated without creating a second sandbox',
    cause: error,
  });
}
