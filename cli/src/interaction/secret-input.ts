// Reads secrets from stdin, a file or a hidden prompt. Never from arguments: every user of a
// machine can read those.
import { readFile, stat } from 'node:fs/promises';
import type { CliContext } from '../program/context.ts';
import { CliFailure, UsageError } from '../output/failure.ts';
import { prompt, canPrompt } from './prompt.ts';
import { readBounded } from './read-bounded.ts';

const MOST_BYTES = 65_536;

/** Trimmed. @param what name of the secret, for prompts and errors */
export async function readSecret(
  context: Pick<CliContext, 'stdin' | 'stderr' | 'signal'>,
  what: string,
): Promise<string> {
  if (canPrompt(context)) return await prompt(context, `${what} (not shown): `, { hidden: true });
  const failure = (): UsageError =>
    new UsageError(`stdin has more than ${MOST_BYTES} bytes; expected only the ${what}`);
  const input = await readBounded(context.stdin, context.signal, { bytes: MOST_BYTES, failure });
  return only(input.toString('utf8'), what, 'stdin');
}

/** Reads a file, or stdin for `-`. */
export async function readSecretFile(
  context: Pick<CliContext, 'stdin' | 'stderr' | 'signal'>,
  path: string,
  what: string,
): Promise<string> {
  if (path === '-') return await readSecret(context, what);
  let text: string;
  try {
    const { size } = await stat(path);
    if (size > MOST_BYTES) throw new Error(`larger than ${MOST_BYTES} bytes`);
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw new CliFailure(`cannot read ${path}: ${(error as Error).message}`, { cause: error });
  }
  return only(text, what, path);
}

function only(text: string, what: string, from: string): string {
  const secret = text.trim();
  if (secret === '') throw new UsageError(`${from} is empty; expected the ${what}`);
  return secret;
}
