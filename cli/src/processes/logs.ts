// `berth logs`: prints the output of a process; with --follow, to its end. Without a process, why
// its sandbox is as it is.
import type { BerthError, SandboxProcess } from '@berth/sdk';
import { UsageError } from '../output/failure.ts';
import type { CliContext } from '../program/context.ts';
import type { Input } from '../program/command-spec.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import { Interruptions } from './interruptions.ts';
import { showDiagnostics } from './sandbox-logs.ts';
import { endText } from './view.ts';
import { findProcess, processesOf } from './find.ts';
import { ShownOutput } from './shown-output.ts';

interface LogsInput {
  follow?: true;
  tail?: number;
  since?: string;
}

export async function showLogs(
  context: CliContext,
  { args: [typedSandbox, typed], options }: Input<LogsInput>,
): Promise<void> {
  const { out, signal, stderr } = context;
  if (typed === undefined) {
    const option = (['follow', 'tail', 'since'] as const).find((name) => name in options);
    if (option !== undefined) throw new UsageError(`--${option} requires a process`, { remedy: 'berth ps lists them' });
    await showDiagnostics(context, await findSandbox(context, typedSandbox));
    return;
  }
  const { follow, tail, since } = options;
  if (tail !== undefined && since !== undefined) throw new UsageError('--tail cannot be combined with --since');
  const id = await findSandbox(context, typedSandbox);
  const process = await findProcess(await processesOf(context, id), { sandboxId: id, typed, signal });
  checkCursor(process, since);
  const shown = new ShownOutput(context);
  const interruptions = new Interruptions(id, (text) => shown.note(text));
  const onRetry = (error: BerthError): void => {
    if (follow !== true && error.code === 'sandbox_state_conflict') throw error;
    interruptions.failed(error);
  };
  let cursor = since;
  let isComplete = false;
  try {
    for await (const chunk of process.output({ since, tail, follow: follow === true, signal, onRetry })) {
      interruptions.over();
      await shown.write(chunk);
      ({ cursor } = chunk);
    }
    interruptions.over();
    isComplete = follow === true || process.data.status === 'exited';
    if (follow === true) shown.note(`berth: ${endText(process.data)}`);
  } finally {
    if (!isComplete && cursor !== undefined && stderr.isTTY && !out.json)
      shown.note(`berth: continue with --since ${cursor}`);
  }
}

/** A terminal has one output, other processes have two. */
function checkCursor({ id, data: { tty } }: SandboxProcess, since: string | undefined): void {
  if (since === undefined || tty !== since.includes('.')) return;
  const [what, example] = tty ? ['one number', '1024'] : ['two numbers', '1024.0'];
  throw new UsageError(`'${since}' is not a cursor of ${id}: a cursor of ${tty ? 'a terminal' : 'pipes'} has ${what}`, {
    remedy: `example: --since ${example}`,
  });
}
