// `berth run`: a sandbox for one command. Made, run in, and destroyed whatever happens in between:
// also after a signal, a failure, a connection that was lost.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { BerthError, type Sandbox, type SandboxSpec } from '@berth/sdk';
import { attachCommand, checkAttachment } from '../commands/attached-command.ts';
import { commandText } from '../commands/command-text.ts';
import type { CliContext } from '../program/context.ts';
import { CliFailure, EXIT_BY_SIGNAL } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { sandboxSpec, type SandboxOptions } from './create-body.ts';
import { reasonText } from './view.ts';
import type { Input } from '../program/command-spec.ts';
import { untilThere } from './create.ts';

export type RunOptions = SandboxOptions & { interactive?: true; tty?: true; keep?: true };

/** Waits between the tries of what may be made again without doing it twice, in seconds. */
const WAITS_S = [1, 2, 4, 8];

/** Resolves with the exit code of the command. */
export async function run(context: CliContext, { args: words, options }: Input<RunOptions>): Promise<number> {
  const { interactive, tty, keep, ...made } = options;
  const attachment = { interactive: interactive === true, tty: tty === true };
  checkAttachment(context, attachment);
  const spec = await sandboxSpec(made);
  const { orgId, projectId } = await context.connect();
  spec.projectId = await projectId();
  const org = await orgId();
  context.signal.throwIfAborted();
  const signals = new RunSignals(context);
  try {
    const sandbox = await make(context, spec, org, signals);
    try {
      await prepare(context, sandbox, signals.stop);
      return await attachCommand(
        { ...context, signal: signals.stop },
        { sandboxId: sandbox.id, command: commandText(words) },
        attachment,
      );
    } finally {
      if (keep === true) context.out.note(`berth: ${sandbox.id} is kept; berth sandbox rm ${sandbox.id} takes it away`);
      else await destroy(context, sandbox, signals);
    }
  } finally {
    signals.release();
  }
}

/**
 * What the signals to this process ask for while no command runs: a first one, to take back what
 * was begun; a further one, to leave it as it is.
 */
class RunSignals {
  readonly #stopping = new AbortController();
  readonly #leaving = new AbortController();
  readonly release: () => void;
  #takingBack = false;

  constructor({ takeSignals }: CliContext) {
    this.release = takeSignals((name) => {
      // Who read what was written has gone; nothing is written here.
      if (name === 'SIGPIPE' || !(name in EXIT_BY_SIGNAL)) return;
      const reason = new CliFailure(`stopped by ${name}`, {
        exitCode: EXIT_BY_SIGNAL[name as keyof typeof EXIT_BY_SIGNAL],
      });
      if (this.#takingBack || this.stop.aborted) this.#leaving.abort(reason);
      else this.#stopping.abort(reason);
    });
  }

  get stop(): AbortSignal {
    return this.#stopping.signal;
  }

  get leave(): AbortSignal {
    return this.#leaving.signal;
  }

  takingBack(): void {
    this.#takingBack = true;
  }
}

/**
 * Resolves as soon as its id is known: a signal before that waits for it, as a sandbox that nobody
 * knows of would be left.
 */
async function make(
  { connect, out }: CliContext,
  spec: SandboxSpec,
  orgId: string,
  { leave }: RunSignals,
): Promise<Sandbox> {
  const { berth } = await connect();
  const call = { orgId, idempotencyKey: randomUUID(), wait: false, signal: leave };
  try {
    return await repeated(
      () => berth.sandboxes.create(spec, call),
      (error) => error.retryable,
      leave,
    );
  } catch (error) {
    const unknown = error instanceof BerthError ? error.status === undefined : leave.aborted;
    if (unknown) out.note('berth: a sandbox may have been made all the same; berth sandbox ls shows it');
    throw error;
  }
}

async function prepare({ out, stderr }: CliContext, sandbox: Sandbox, signal: AbortSignal): Promise<void> {
  const work = async (report: (note: string) => void): Promise<void> => {
    const { id, clone } = await untilThere(sandbox, signal, report);
    if (clone?.status !== 'failed') return;
    const why = clone.reason === null ? '' : `: ${plainText(reasonText(clone.reason))}`;
    throw new CliFailure(`the repository of ${id} was not cloned${why}`);
  };
  // What is written to stderr where it is no terminal is the command's.
  if (stderr.isTTY) await out.step('making the sandbox', work);
  else await work(() => undefined);
}

/** Never fails: what the command came to counts. What may be left is named. */
async function destroy({ connect, out }: CliContext, { id }: Sandbox, signals: RunSignals): Promise<void> {
  signals.takingBack();
  const { leave } = signals;
  try {
    const { berth } = await connect();
    await repeated(
      () => berth.raw.destroySandbox({ path: { sandboxId: id }, signal: leave }),
      ({ status, code }) => status === undefined || status >= 500 || code === 'rate_limited',
      leave,
    );
  } catch (error) {
    if (error instanceof BerthError && error.code === 'sandbox_not_found') return;
    const why = error instanceof BerthError ? `${plainText(error.message)} (${error.code})` : 'it was not waited for';
    out.note(`berth: the sandbox ${id} may be left: ${why}\n  berth sandbox rm ${id} takes it away`);
  }
}

/** Makes a call again as long as that is of use, a few times. */
async function repeated<T>(
  call: () => Promise<T>,
  isOfUse: (error: BerthError) => boolean,
  signal: AbortSignal,
): Promise<T> {
  for (const wait of WAITS_S) {
    try {
      signal.throwIfAborted();
      return await call();
    } catch (error) {
      if (!(error instanceof BerthError) || !isOfUse(error) || (error.retryAfter ?? 0) > Math.max(...WAITS_S))
        throw error;
      await delay(Math.max(wait, error.retryAfter ?? 0) * 1_000, undefined, { signal }).catch(() =>
        signal.throwIfAborted(),
      );
    }
  }
  return await call();
}
