// `berth exec`: runs a command in a sandbox, with the exec route, streamed with -i or -t, or as a
// process with -d.
import { EXEC_LIMITS } from '@berth/sdk/limits';
import { Berth } from '@berth/sdk';
import { attachCommand, checkAttachment } from './attached-command.ts';
import { programOptions, type ProgramOptions } from '../connections/program-options.ts';
import { commandText, quoted } from './command-text.ts';
import type { CliContext } from '../program/context.ts';
import { EXIT, UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { startProcess } from '../processes/start.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import type { Input } from '../program/command-spec.ts';

export interface ExecOptions extends ProgramOptions {
  interactive?: true;
  tty?: true;
  detach?: true;
  name?: string;
  keepAwake?: true;
  timeoutSeconds?: number;
}

/** Long options of `berth exec` without a value. */
const FLAGS = new Set(['--interactive', '--tty', '--detach', '--keep-awake', '--json']);

/** Added to the command's timeout, for a wake and the network. */
const BEYOND_COMMAND_MS = 90_000;

export async function exec(
  context: CliContext,
  { args: [typed = '', ...words], options: all }: Input<ExecOptions>,
): Promise<number> {
  const shown = quoted(plainText(typed));
  const given = commandWords(words, shown);
  const { interactive, tty, detach, name, keepAwake, ...options } = all;
  if (detach === true) {
    const id = await findSandbox(context, typed);
    await startProcess(context, { sandboxId: id, words: given }, all);
    return EXIT.ok;
  }
  if (name !== undefined) throw new UsageError('--name requires -d: only processes have names');
  if (keepAwake === true) throw new UsageError('--keep-awake requires -d: a command keeps its sandbox awake by itself');
  const { min, max } = EXEC_LIMITS.timeoutSeconds;
  if (options.timeoutSeconds !== undefined && options.timeoutSeconds > max) {
    throw new UsageError(`--timeout-seconds must be a whole number from ${min} to ${max} without -d`, {
      remedy: `berth exec -d --timeout-seconds ${options.timeoutSeconds} ${shown} -- COMMAND starts a process`,
    });
  }
  const command = commandText(given);
  const attachment = { interactive: interactive === true, tty: tty === true };
  if (!attachment.interactive && !attachment.tty)
    return await runForResult(context, await findSandbox(context, typed), command, options);
  if (context.out.json) throw new UsageError('--json cannot be combined with -i or -t');
  if (options.timeoutSeconds !== undefined) {
    throw new UsageError('--timeout-seconds cannot be combined with -i or -t: a streamed command has no timeout', {
      remedy:
        `set a timeout in the sandbox: berth exec ${flagsOf(attachment)} ` +
        `${shown} -- timeout ${options.timeoutSeconds} COMMAND`,
    });
  }
  checkAttachment(context, attachment);
  const id = await findSandbox(context, typed);
  return await attachCommand(context, { sandboxId: id, command, ...programOptions(options) }, attachment);
}

function flagsOf({ interactive, tty }: { interactive: boolean; tty: boolean }): string {
  return `-${interactive ? 'i' : ''}${tty ? 't' : ''}`;
}

function commandWords(words: readonly string[], sandbox: string): readonly string[] {
  const [first, ...rest] = words;
  if (first === '--' ? rest.length === 0 : first === undefined)
    throw new UsageError(`missing command; example: berth exec ${sandbox} -- ls -l`);
  if (first === '--') return rest;
  if (first?.startsWith('-') === true) {
    throw new UsageError(`'${first}' must come before the sandbox: words after it are the command`, {
      remedy: `berth exec ${misplacedOptions(words).join(' ')} ${sandbox} -- COMMAND`,
    });
  }
  return words;
}

/** Options typed after the sandbox, with their values. */
function misplacedOptions(words: readonly string[]): readonly string[] {
  const separator = words.indexOf('--');
  if (separator !== -1) return words.slice(0, separator).map((word) => quoted(word));
  const takesValue = (word = ''): boolean => /^(?:--[^=]+|-[weu])$/.test(word) && !FLAGS.has(word);
  const end = words.findIndex((word, index) => !word.startsWith('-') && !takesValue(words[index - 1]));
  return words.slice(0, end === -1 ? words.length : end).map((word) => quoted(word));
}

async function runForResult(
  { connect, out, signal, stderr }: CliContext,
  id: string,
  command: string,
  options: ProgramOptions & Pick<ExecOptions, 'timeoutSeconds'>,
): Promise<number> {
  const { token, url } = await connect();
  // The options include those of the call, such as --json.
  const { timeoutSeconds } = options;
  const seconds = timeoutSeconds ?? EXEC_LIMITS.timeoutSeconds.default;
  const timeoutMs = seconds * 1_000 + BEYOND_COMMAND_MS;
  const { raw } = new Berth({ url, apiKey: token, timeoutMs });
  const body = {
    command,
    ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }),
    ...programOptions(options),
  };
  const result = await raw.execInSandbox({ path: { sandboxId: id }, body, signal });
  if (out.json) {
    out.object(result);
  } else {
    stderr.write(result.stderr);
    await out.bytes(result.stdout);
  }
  if (result.truncated) {
    const most = EXEC_LIMITS.outputBytes / 1_024;
    out.hint(
      `berth: output truncated to the last ${most} KiB of stdout and of stderr; berth exec -i streams all of it`,
    );
  }
  if (result.timedOut) out.note(`berth: the command was killed after ${seconds} s (--timeout-seconds)`);

  return result.exitCode;
}
