// `berth exec`: a command in a sandbox. Its result by the exec route, or, with -i or -t, its
// streams as they come.
import { EXEC_LIMITS } from '@berth/sdk/limits';
import { Berth } from '@berth/sdk';
import { attachCommand, checkAttachment } from './attached-command.ts';
import { commandText } from './command-text.ts';
import type { CliContext } from '../program/context.ts';
import { UsageError } from '../output/failure.ts';
import { sandboxId } from '../service/resource-id.ts';
import type { Input } from '../program/command-spec.ts';

export interface ExecOptions {
  interactive?: true;
  tty?: true;
  timeoutSeconds?: number;
}

/** What it may take beyond the command's own time: a wake before it, and the way. */
const BEYOND_COMMAND_MS = 90_000;

/** Resolves with the exit code of the command. */
export async function exec(
  context: CliContext,
  { args: [typed, ...words], options }: Input<ExecOptions>,
): Promise<number> {
  const id = sandboxId(typed);
  const command = commandText(commandWords(words, id));
  const attachment = { interactive: options.interactive === true, tty: options.tty === true };
  if (!attachment.interactive && !attachment.tty)
    return await runForResult(context, id, command, options.timeoutSeconds);
  if (context.out.json)
    throw new UsageError('--json goes with neither -i nor -t: what the command writes is passed on as it is');
  if (options.timeoutSeconds !== undefined) {
    throw new UsageError('--timeout-seconds goes with neither -i nor -t: the command runs until it ends, or you do', {
      remedy: `berth exec -i ${id} -- timeout ${options.timeoutSeconds} COMMAND bounds it in the sandbox`,
    });
  }
  checkAttachment(context, attachment);
  return await attachCommand(context, { sandboxId: id, command }, attachment);
}

function commandWords(words: readonly string[], id: string): readonly string[] {
  const [first, ...rest] = words;
  if (first === '--' ? rest.length === 0 : first === undefined)
    throw new UsageError(`which command? As in: berth exec ${id} -- ls -l`);
  if (first === '--') return rest;
  if (first?.startsWith('-') === true) {
    throw new UsageError(`'${first}' stands where the command begins: options of berth exec come before the sandbox`, {
      remedy: `berth exec ${first} ${id} -- COMMAND`,
    });
  }
  return words;
}

async function runForResult(
  { connect, out, signal, stderr }: CliContext,
  id: string,
  command: string,
  seconds?: number,
): Promise<number> {
  const { token, url } = await connect();
  const timeoutMs = (seconds ?? EXEC_LIMITS.timeoutSeconds.default) * 1_000 + BEYOND_COMMAND_MS;
  const { raw } = new Berth({ url, apiKey: token, timeoutMs });
  const body = seconds === undefined ? { command } : { command, timeoutSeconds: seconds };
  const result = await raw.execInSandbox({ path: { sandboxId: id }, body, signal });
  if (out.json) {
    out.object(result);
  } else {
    stderr.write(result.stderr);
    await out.bytes(result.stdout);
  }
  if (result.truncated) {
    const most = EXEC_LIMITS.outputBytes / 1_024;
    out.note(
      `berth: there was more output: this is its end, at most ${most} KiB of each of stdout and stderr; berth exec -i gives all of it`,
    );
  }
  if (result.timedOut) {
    out.note(
      `berth: the command was ended: its ${seconds ?? EXEC_LIMITS.timeoutSeconds.default} s were up (--timeout-seconds)`,
    );
  }

  return result.exitCode;
}
