// `berth sandbox create`: makes one and stays until it can be used. Its id is known, and told,
// before it is waited for.
import {
  BerthError,
  SANDBOX_STATES,
  type CreateOptions,
  type Sandbox,
  type SandboxData,
  type SandboxSpec,
} from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { CliFailure } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import type { Input } from '../program/command-spec.ts';
import { sandboxSpec, type SandboxOptions } from './create-body.ts';
import { reasonText, sandboxFields } from './view.ts';

export type CreateInput = SandboxOptions & { idempotencyKey?: string; wait: boolean };

/**
 * Without a terminal the id stands alone on stdout, also when its repository could not be cloned:
 * whoever reads it has a sandbox to end.
 */
export async function createSandbox(context: CliContext, { options }: Input<CreateInput>): Promise<void> {
  const { out, stdout } = context;
  const spec = await sandboxSpec(options);
  const data = await out.step(
    'making the sandbox',
    async (report) => await makeSandbox(context, spec, options, report),
  );
  if (out.json) out.object({ sandbox: data });
  else if (stdout.isTTY) out.fields(sandboxFields(data).filter(([name]) => SHOWN.has(name)));
  else out.line(data.id);
  if (data.clone?.status === 'failed') {
    const why = data.clone.reason === null ? '' : `: ${plainText(reasonText(data.clone.reason))}`;
    out.note(`berth: its repository was not cloned${why}`);
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

/** Resolves with it awake and its repository cloned, or not; without `wait` as it was answered. */
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
    if (signal.aborted) out.note('berth: it may be made all the same; berth sandbox ls shows it');
    throw lost(error, signal);
  }
  const { id } = sandbox;
  if (!wait) return sandbox.data;
  return await untilThere(sandbox, signal, report, () => {
    // What is under way goes on without us.
    out.note(`berth: ${id} was asked for and may go on being made; berth sandbox rm ${id} ends it`);
  });
}

/**
 * Resolves with it awake and its repository cloned, or not. @param unknown called when it cannot be
 * waited for any more
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
      report(`${id} clones its repository`);
      await sandbox.waitUntil((now) => !isCloning(now), { signal, timeoutMs: TIMEOUT_MS });
    }
  } catch (error) {
    unknown?.();
    throw error;
  }
  const { status, statusReason } = sandbox.data;
  if (status !== 'failed' && status !== 'deleted') return sandbox.data;
  throw new CliFailure(`${id} ${status}${statusReason === null ? '' : `: ${plainText(reasonText(statusReason))}`}`, {
    remedy: `berth sandbox rm ${id} takes away what is left of it`,
  });
}

/** A repository may take its time. */
const TIMEOUT_MS = 900_000;

/**
 * Nothing is under way for it any more, in whichever status it came to rest. Of a status that is
 * not known nothing is said.
 */
function isSettled(status: string): boolean {
  return (SANDBOX_STATES as Readonly<Record<string, { settled: boolean } | undefined>>)[status]?.settled ?? true;
}

/** Awake, and not set up yet. */
function isCloning({ status, clone }: SandboxData): boolean {
  return status === 'running' && (clone?.status === 'pending' || clone?.status === 'cloning');
}

/** Nobody knows whether it was made: says so with what can be done by this program. */
function lost(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted || !(error instanceof BerthError) || error.status !== undefined) return error;
  if (error.code !== 'connection_failed' && error.code !== 'timeout') return error;
  return new CliFailure(`${plainText(error.message)} (${error.code})`, {
    remedy:
      'berth sandbox ls shows what there is; with --idempotency-key KEY the same command can be given again without making a second one',
    cause: error,
  });
}
