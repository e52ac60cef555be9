// Summarises the stderr of the sandbox side of a copy.
import { plainText } from '../output/plain-text.ts';

const KEPT_CHARACTERS = 65_536;
const SHOWN_LINES = 10;

const REASONS: readonly (readonly [RegExp, string])[] = [
  [/No space left on device|Disk quota exceeded|Wrote only \d+ of \d+ bytes/, 'the disk of the sandbox is full'],
  [/Permission denied|Operation not permitted/, 'permission denied: commands run as the user of the sandbox'],
  [/Read-only file system/, 'the file system of the sandbox is read-only'],
  [/File name too long/, 'a file name is too long for the sandbox'],
];

/** Reads a stream to its end; resolves with its start. */
export async function textOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of stream) if (text.length < KEPT_CHARACTERS) text += decoder.decode(chunk, { stream: true });

  return text.slice(0, KEPT_CHARACTERS);
}

/** Lines worth showing; may be empty. */
export function linesOf(said: string): string[] {
  const lines = said
    .split('\n')
    .map((line) =>
      plainText(line.replace(/^(?:tar|mv|mktemp|chmod|readlink): (?:(?:\.\/)?r(?:\/|: )|\.\/)?/, '').trim()),
    )
    .filter(
      (line) => line !== '' && !/^(Exiting with failure status|Error is not recoverable|Removing leading)/.test(line),
    );
  return lines.length <= SHOWN_LINES
    ? lines
    : [...lines.slice(0, SHOWN_LINES), `and ${lines.length - SHOWN_LINES} more lines`];
}

/** Reason of a failure, as a single line. */
export function reasonOf(said: string): string {
  const known = REASONS.find(([pattern]) => pattern.test(said));
  const [line] = linesOf(said);
  return known?.[1] ?? line ?? 'the command in the sandbox failed without a message';
}
