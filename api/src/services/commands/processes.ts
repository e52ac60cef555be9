// Processes of a sandbox: data plane, directly through the host. The guest owns them: there are no
// rows. A look at one does not count as use of the sandbox.
import { createHash } from 'node:crypto';
import { constants } from 'node:os';
import type { SandboxProcess, StartProcess } from '@berth/contract/commands/processes.ts';
import type { ActivityKind } from '@berth/contract/route/activity-kinds.ts';
import * as calls from '@berth/protocol/calls/processes.ts';
import { PROCESS_ID, PROCESS_LIMITS, TIMED_OUT_EXIT_CODE } from '@berth/protocol/guest-limits.ts';
import type { GuestProcess } from '@berth/protocol/processes.ts';
import type { HostClient } from '../../hosts/client.ts';
import type { Actor } from '../../rules/access/access.ts';
import { canonicalJson } from '../../rules/canonical-json.ts';
import { CodedError, invalidField } from '../../rules/coded-error.ts';
import { bytesOf } from '../../rules/files/content.ts';
import { requireLegal } from '../../rules/sandboxes/action.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import { noteAwakeProcess } from '../../store/sandboxes/activity-signals.ts';
import { idOfHash, newId } from '../../store/database/ids.ts';
import type { LocatedSandboxRow } from '../../store/sandboxes/sandboxes.ts';
import type { ServiceContext } from '../context/context.ts';
import { ensureAwake, located, type SandboxInUse } from '../sandboxes/use.ts';
import { environmentFor } from '../sandboxes/variables.ts';
import { explainExecFailure, processNotFound, type Named } from '../hosts/command-failure.ts';

/** Copies of a response in memory: as received, and as sent. */
export const COPIES = 2;
/** Size of a process in a response, without its texts. */
const VIEW_BYTES = 512;

/** Caller and sandbox of a call. */
interface ProcessCall {
  actor: Actor;
  sandbox: LocatedSandboxRow;
  signal: AbortSignal;
  /** Counts bytes that the call keeps. Throws `too_much_in_flight`. */
  hold: (bytes: number) => void;
}

export interface OneProcess extends ProcessCall {
  params: { processId: string };
}

/** Starts a process. With a key, a repeat returns the first one. */
export async function startProcess(
  context: ServiceContext,
  call: ProcessCall,
  body: StartProcess,
  { idempotencyKey, markReplayed }: { idempotencyKey: string | undefined; markReplayed: () => void },
): Promise<SandboxProcess> {
  const { sandbox } = call;
  const processId =
    idempotencyKey === undefined ? newId('process') : idOfHash('process', `${sandbox.id} ${idempotencyKey}`);
  const { command, argv, cwd, env, user, tty, cols, rows, stdin, keepAwake, name, timeoutSeconds, outputBytes } = body;
  const digest = createHash('sha256').update(canonicalJson(body)).digest('hex');
  const request = {
    command,
    argv,
    cwd,
    user,
    terminal: tty ? { rows, cols } : undefined,
    stdin,
    keepAwake,
    name: name ?? null,
    limitSeconds: timeoutSeconds ?? null,
    outputBytes,
    digest,
  };
  const started = await use(context, call, body, async (host, about) => {
    const order = { ...request, env: await environmentFor(context, sandbox, env) };
    return await host.call(calls.startProcess, { ...about, params: { processId }, body: order }, call);
  });
  if (keepAwake) await noteAwakeProcess(context.db, sandbox.id);
  if (started.digest !== digest) {
    throw new CodedError(
      'idempotency_key_conflict',
      'this Idempotency-Key was used for a process with another body; use a new key for it',
    );
  }
  if (started.isKnown) markReplayed();
  else await note(context, call, 'sandbox_process_started', { processId });
  return shown(sandbox.id, started.process);
}

export async function listProcesses(context: ServiceContext, call: ProcessCall): Promise<SandboxProcess[]> {
  const { processes } = await look(context, call, (host, about) =>
    host.call(calls.listProcesses, about, { signal: call.signal }),
  );
  call.hold(COPIES * processes.reduce((sum, { command, cwd }) => sum + command.length + cwd.length + VIEW_BYTES, 0));
  return processes.map((process) => shown(call.sandbox.id, process));
}

/** With a wait, once it has ended. */
export async function getProcess(context: ServiceContext, call: OneProcess, waitMs: number): Promise<SandboxProcess> {
  const params = paramsOf(call);
  const { process } = await look(context, call, (host, about) =>
    host.call(calls.getProcess, { ...about, params, query: { waitMs } }, { signal: call.signal }),
  );
  return shown(call.sandbox.id, process);
}

export async function writeInput(
  context: ServiceContext,
  call: OneProcess,
  {
    data,
    encoding,
    offset,
    end,
  }: { data: string; encoding: 'utf8' | 'base64'; offset?: number | undefined; end: boolean },
): Promise<number> {
  const params = paramsOf(call);
  const bytes = bytesOf('body.data', data, encoding);
  if (bytes.length > PROCESS_LIMITS.inputBytes) {
    const problem = `has ${bytes.length} bytes; at most ${PROCESS_LIMITS.inputBytes} go in one request`;
    throw invalidField('body.data', problem);
  }
  const body = { offset: offset ?? null, base64: bytes.toString('base64'), end };
  const written = await use(context, call, { isInput: true }, (host, about) =>
    host.call(calls.writeProcessInput, { ...about, params, body }, { signal: call.signal }),
  );
  return written.offset;
}

export async function signalProcess(
  context: ServiceContext,
  call: OneProcess,
  signal: calls.ProcessSignal,
): Promise<SandboxProcess> {
  const params = paramsOf(call);
  const { process } = await use(context, call, {}, (host, about) =>
    host.call(calls.signalProcess, { ...about, params, body: { signal } }, { signal: call.signal }),
  );
  await note(context, call, 'sandbox_process_signaled', { processId: params.processId, signal });
  return shown(call.sandbox.id, process);
}

export async function resizeProcess(
  context: ServiceContext,
  call: OneProcess,
  size: { rows: number; cols: number },
): Promise<SandboxProcess> {
  const params = paramsOf(call);
  const { process } = await use(context, call, {}, (host, about) =>
    host.call(calls.resizeProcess, { ...about, params, body: size }, { signal: call.signal }),
  );
  return shown(call.sandbox.id, process);
}

/** Kills it if it runs. */
export async function removeProcess(context: ServiceContext, call: OneProcess): Promise<void> {
  const params = paramsOf(call);
  const { isRemoved } = await use(context, call, {}, (host, about) =>
    host.call(calls.removeProcess, { ...about, params }, { signal: call.signal }),
  );
  if (!isRemoved) throw processNotFound();
  await note(context, call, 'sandbox_process_removed', { processId: params.processId });
}

type HostCall<T> = (host: HostClient, about: { vmId: string }) => Promise<T>;

/** A call that uses the sandbox, and wakes it if its project has wake-on-use. */
async function use<T>(
  context: ServiceContext,
  { actor, sandbox, signal }: ProcessCall,
  asked: Named,
  call: HostCall<T>,
): Promise<T> {
  const inUse = await ensureAwake(context, actor, sandbox, { action: 'exec', signalOfUse: 'exec' }, signal);
  return await answered(context, inUse, asked, call);
}

/** A call that is no use: a sandbox falls asleep while its processes are watched. */
export async function look<T>(
  context: ServiceContext,
  { sandbox }: Pick<ProcessCall, 'sandbox'>,
  call: HostCall<T>,
): Promise<T> {
  requireLegal('exec', sandbox.status, 'read its processes');
  return await answered(context, located(sandbox), {}, call);
}

async function answered<T>(
  context: ServiceContext,
  sandbox: SandboxInUse,
  asked: Named,
  call: HostCall<T>,
): Promise<T> {
  try {
    return await call(context.hosts.at(sandbox.host_url), { vmId: sandbox.id });
  } catch (error) {
    throw await explainExecFailure(context, sandbox.id, asked, error);
  }
}

/** The guest's word is shown as it is; its ids are checked by the protocol. */
export function shown(
  sandboxId: string,
  { processId, name, command, cwd, user, tty, hasInput, keepAwake, startedUnixMs, end }: GuestProcess,
): SandboxProcess {
  return {
    id: processId,
    sandboxId,
    name,
    command,
    cwd,
    user,
    tty,
    stdin: hasInput,
    keepAwake,
    status: end === null ? 'running' : 'exited',
    exitCode: end === null ? null : exitCodeOf(end),
    signal: end?.signal ?? null,
    reason: end?.reason ?? null,
    startedAt: new Date(startedUnixMs).toISOString(),
    endedAt: end === null ? null : new Date(end.endedUnixMs).toISOString(),
  };
}

/** Returns the exit code that exec has, also after a signal. */
function exitCodeOf({ exitCode, signal, reason }: NonNullable<GuestProcess['end']>): number | null {
  if (reason === 'timed_out') return TIMED_OUT_EXIT_CODE;
  const number = (constants.signals as Readonly<Record<string, number>>)[signal ?? ''];
  return number === undefined ? exitCode : 128 + number;
}

export function paramsOf({ params: { processId } }: Pick<OneProcess, 'params'>): { processId: string } {
  if (!PROCESS_ID.test(processId)) throw processNotFound();
  return { processId };
}

async function note(
  context: ServiceContext,
  { actor, sandbox }: Pick<ProcessCall, 'actor' | 'sandbox'>,
  kind: ActivityKind,
  details: Record<string, unknown>,
): Promise<void> {
  const { id, org_id: orgId, project_id: projectId } = sandbox;
  await insertActivity(context.db, { orgId, projectId, sandboxId: id, actor, kind, details });
}
