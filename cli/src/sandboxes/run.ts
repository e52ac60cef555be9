// `berth run`: creates a sandbox, runs a command and destroys the sandbox, also after a signal, a
// failure or a lost connection.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { BerthError, type Sandbox, type SandboxSpec } from '@berth/sdk';
import { attachCommand, checkAttachment } from '../commands/attached-command.ts';
import { programOptions, type ProgramOptions } from '../connections/program-options.ts';
import { commandText } from '../commands/command-text.ts';
import type { CliContext } from '../program/context.ts';
import { CliFailure, EXIT_BY_SIGNAL } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { sandboxSpec, type SandboxOptions } from './create-body.ts';
import { reasonText } from './view.ts';
import type { Input } from '../program/command-spec.ts';
import { untilThere } from './create.ts';

export type RunOptions = SandboxOptions & ProgramOptions & { interactive?: true; tty?: true; keep?: true };

/** Delays between retries, in seconds. */
const WAITS_S = [1, 2, 4, 8];

export async function run(context: CliContext, { args: words, options }: Input<RunOptions>): Promise<number> {
  const { interactive, tty, keep } = options;
  const attachment = { interactive: interactive === true, tty: tty === true };
  checkAttachment(context, attachment);
  const spec = await sandboxSpec(options);
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
        { sandboxId: sandbox.id, command: commandText(words), ...programOptions(options) },
        attachment,
      );
    } finally {
      if (keep === true) context.out.hint(`berth: kept ${sandbox.id}; delete it with berth sandbox rm ${sandbox.id}`);
      else await destroy(context, sandbox, signals);
    }
  } finally {
    signals.release();
  }
}

/**
 * Signals while no command runs: the first cancels and cleans up, the second exits without waiting.
 */
class RunSignals {
  readonly #stopping = new AbortController();
  readonly #leaving = new AbortController();
  readonly release: () => void;
  #cleaningUp = false;

  constructor({ takeSignals }: CliContext) {
    this.release = takeSignals((name) => {
      // Ignore a closed stdout: nothing is written here.
      if (name === 'SIGPIPE' || !(name in EXIT_BY_SIGNAL)) return;
      const reason = new CliFailure(`stopped by ${name}`, {
        exitCode: EXIT_BY_SIGNAL[name as keyof typeof EXIT_BY_SIGNAL],
      });
      if (this.#cleaningUp || this.stop.aborted) this.#leaving.abort(reason);
      else this.#stopping.abort(reason);
    });
  }

  get stop(): AbortSignal {
    return this.#stopping.signal;
  }

  get leave(): AbortSignal {
    return this.#leaving.signal;
  }

  cleaningUp(): void {
    this.#cleaningUp = true;
  }
}

/** Resolves with the sandbox. A signal waits for its id, so that the sandbox can be destroyed. */
async function make(
  { connect, out }: CliContext,
  spec: SandboxSpec,
  orgId: string,
  { leave }: RunSignals,
): Promise<Sandbox> {
  const { berth } = await connect();
  const call = { orgId, idempotencyKey: randomUUID(), wait: false, signal: leave };
  let unknown = false;
  const create = async (): Promise<Sandbox> => {
    try {
      return await berth.sandboxes.create(spec, call);
    } catch (error) {
      unknown ||= error instanceof BerthError ? error.status === undefined && !error.unsent : leave.aborted;
      throw error;
    }
  };
  try {
    return await repeated(create, (error) => error.retryable, leave);
  } catch (error) {
    if (unknown) out.hint('berth: a sandbox may have been created; check with berth sandbox ls');
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
  // Without a terminal, stderr belongs to the command.
  if (stderr.isTTY) await out.step('creating the sandbox', work);
  else await work(() => undefined);
}

/** Never fails, to keep the exit code of the command. Reports a sandbox that may remain. */
async function destroy({ connect, out }: CliContext, { id }: Sandbox, signals: RunSignals): Promise<void> {
  signals.cleaningUp();
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
    const why = error instanceof BerthError ? `${plainText(error.message)} (${error.code})` : 'interrupted';
    out.hint(`berth: the sandbox ${id} may still exist: ${why}\n  delete it with berth sandbox rm ${id}`);
  }
}

/** Retries a call while `isOfUse` allows, at most five times in all. */
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
