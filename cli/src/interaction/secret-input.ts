// Secrets that are handed in: from stdin, a file, or a person who types them unseen. Never from
// words of the command line, which everybody on a machine can read.
import { readFile, stat } from 'node:fs/promises';
import type { CliContext } from '../program/context.ts';
import { CliFailure, UsageError } from '../output/failure.ts';
import { ask, mayAsk } from './prompt.ts';

const MOST_BYTES = 65_536;

/** Without the line end behind it. @param what it is, as it is asked for */
export async function readSecret(
  context: Pick<CliContext, 'stdin' | 'stderr' | 'signal'>,
  what: string,
): Promise<string> {
  if (mayAsk(context)) return await ask(context, `${what} (not shown): `, { hidden: true });
  const chunks: Buffer[] = [];
  let bytes = 0;
  const { stdin, signal } = context;
  const stop = (): void => void stdin.destroy(signal.reason as Error);
  signal.addEventListener('abort', stop, { once: true });
  try {
    for await (const chunk of stdin as AsyncIterable<Buffer>) {
      bytes += chunk.byteLength;
      if (bytes > MOST_BYTES)
        throw new UsageError(`stdin has more than ${MOST_BYTES} bytes; it is to have the ${what} alone`);
      chunks.push(chunk);
    }
  } finally {
    signal.removeEventListener('abort', stop);
  }
  return only(Buffer.concat(chunks).toString('utf8'), what, 'stdin');
}

/** Of a file, or of stdin for `-`. */
export async function readSecretFile(
  context: Pick<CliContext, 'stdin' | 'stderr' | 'signal'>,
  path: string,
  what: string,
): Promise<string> {
  if (path === '-') return await readSecret(context, what);
  let text: string;
  try {
    const { size } = await stat(path);
    if (size > MOST_BYTES) throw new Error(`it has more than ${MOST_BYTES} bytes`);
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw new CliFailure(`${path} cannot be read: ${(error as Error).message}`, { cause: error });
  }
  return only(text, what, path);
}

function only(text: string, what: string, from: string): string {
  const secret = text.trim();
  if (secret === '') throw new UsageError(`${from} is empty; it is to have the ${what}`);
  return secret;
}
