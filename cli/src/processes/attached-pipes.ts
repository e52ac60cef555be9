// Connects stdin, stdout and stderr to those of a process.
import { BerthError } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import type { Attachment } from './attachment.ts';
import { Interruptions } from './interruptions.ts';
import { ShownOutput } from './shown-output.ts';

/** Resolves with the exit code, null if it is unknown. Rejects once its signal aborts. */
export async function attachPipes(context: CliContext, attachment: Attachment): Promise<number | null> {
  const { process, tail, signal, interactive } = attachment;
  const shown = new ShownOutput(context);
  const interruptions = new Interruptions(process.sandboxId, (text) => shown.note(text));
  if (interactive) void passInput(context, attachment, (text) => shown.note(text));
  const chunks = process.outputUntilExit({ tail, signal, onRetry: (error) => interruptions.failed(error) });
  for (;;) {
    const step = await chunks.next();
    interruptions.over();
    if (step.done === true) return step.value.exitCode;
    await shown.write(step.value);
  }
}

/** Never rejects: leaves when the input fails. */
async function passInput(
  { stdin }: CliContext,
  { process, signal, leave }: Attachment,
  note: (text: string) => void,
): Promise<void> {
  const input = process.stdin.getWriter();
  let hasInput = false;
  try {
    for await (const chunk of stdin) {
      hasInput = true;
      await input.write(chunk as Buffer);
    }
    // The programs of a terminal may want more input from elsewhere.
    if (!process.data.tty) await input.close();
  } catch (error) {
    if (signal.aborted) return;
    if (!(error instanceof BerthError) || error.code !== 'process_over') leave(error);
    else if (hasInput && process.data.status === 'running') note(`berth: ${process.id} reads no input`);
  }
}
