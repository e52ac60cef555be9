// `berth attach`: connects this terminal, or stdin, stdout and stderr, to a process.
import { BerthError, type SandboxProcess, type Signal } from '@berth/sdk';
import { CliFailure, EXIT, EXIT_BY_SIGNAL } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import type { CliContext } from '../program/context.ts';
import type { Input } from '../program/command-spec.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import { Detached } from './attachment.ts';
import { attachPipes } from './attached-pipes.ts';
import { attachTerminal } from './attached-terminal.ts';
import { findProcess, processesOf } from './find.ts';
import { endText } from './view.ts';

interface AttachInput {
  tail: number;
  stdin: boolean;
}

/** Signals that are passed on. Others, and a second SIGINT, detach. */
const PASSED = new Set<string>(['SIGINT', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2']);

export async function attach(
  context: CliContext,
  { args: [typedSandbox, typed], options: { tail, stdin: interactive } }: Input<AttachInput>,
): Promise<number> {
  const { out, stdin, signal, stderr } = context;
  const id = await findSandbox(context, typedSandbox);
  const process = await findProcess(await processesOf(context, id), { sandboxId: id, typed, signal });
  const leaving = new AbortController();
  const leave = (reason: unknown): void => leaving.abort(reason);
  const release = context.takeSignals(signalTaker(context, process, leave));
  const attachment = { process, tail, interactive, signal: leaving.signal, leave };
  const inTerminal = process.data.tty && (stdin.isTTY || !interactive);
  try {
    const exitCode = await (inTerminal ? attachTerminal : attachPipes)(context, attachment);
    if (exitCode !== null) return exitCode;
    throw new CliFailure(`the exit code is unknown: ${endText(process.data)}`, { exitCode: EXIT.notRun });
  } catch (error) {
    if (!leaving.signal.aborted) throw error;
    if (stderr.isTTY) out.hint(`\nberth: detached; the process continues: berth attach ${id} ${process.id}`);
    if (leaving.signal.reason instanceof Detached) return EXIT.ok;
    throw leaving.signal.reason;
  } finally {
    release();
    // Ends held requests.
    leave(new Detached());
    // An open stdin would keep berth alive.
    stdin.destroy();
  }
}

function signalTaker(
  { out, stderr }: CliContext,
  process: SandboxProcess,
  leave: (reason: unknown) => void,
): (name: NodeJS.Signals) => void {
  let isInterrupted = false;
  const pass = async (name: Signal): Promise<void> => {
    try {
      await process.kill(name);
      if (name === 'SIGINT' && stderr.isTTY) out.note('berth: SIGINT sent; Ctrl-C again detaches');
    } catch (error) {
      if (!(error instanceof BerthError)) throw error;
      if (error.code !== 'process_over') out.note(`berth: ${name} was not sent: ${plainText(error.message)}`);
    }
  };
  return (name) => {
    if (!PASSED.has(name) || (name === 'SIGINT' && isInterrupted)) {
      const exitCode = EXIT_BY_SIGNAL[name as keyof typeof EXIT_BY_SIGNAL];
      leave(new CliFailure(`stopped by ${name}`, { exitCode }));
      return;
    }
    isInterrupted ||= name === 'SIGINT';
    void pass(name as Signal);
  };
}
