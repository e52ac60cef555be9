// The text of a message, from the argument or stdin.
import { AGENT_TEXT_CHARACTERS } from '@berth/sdk/limits';
import type { CliContext } from '../program/context.ts';
import { readBounded } from '../interaction/read-bounded.ts';
import { UsageError } from '../output/failure.ts';

/** UTF-8 takes at most three bytes for a UTF-16 unit. */
const MOST_BYTES = 3 * AGENT_TEXT_CHARACTERS + 2;

export async function messageText(
  context: Pick<CliContext, 'stdin' | 'signal'>,
  words: readonly string[],
): Promise<string> {
  const isInput = words.length === 0 || (words.length === 1 && words[0] === '-');
  if (isInput && context.stdin.isTTY) {
    throw new UsageError('no message given', {
      remedy: "berth agent send SESSION 'TEXT', or pipe the text: berth agent send SESSION < FILE",
    });
  }
  const text = isInput ? await readInput(context) : words.join(' ');
  if (text.trim() === '') throw new UsageError('the message is empty');
  if (text.length > AGENT_TEXT_CHARACTERS) throw tooLong(text.length);
  return text;
}

/** Without the line end at its end. */
async function readInput({ stdin, signal }: Pick<CliContext, 'stdin' | 'signal'>): Promise<string> {
  const input = await readBounded(stdin, signal, { bytes: MOST_BYTES, failure: () => tooLong(null) });
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(input).replace(/\r?\n$/, '');
  } catch (error) {
    throw new UsageError('stdin is not UTF-8 text', { cause: error });
  }
}

function tooLong(units: number | null): UsageError {
  const length = units === null ? 'it' : `${units} UTF-16 code units`;
  return new UsageError(`the message is too long: ${length}, limit ${AGENT_TEXT_CHARACTERS}`, {
    remedy: 'copy the text into the sandbox with berth cp, and send the path of the file',
  });
}
