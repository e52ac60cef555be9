// What the other end of a copy said, in few words: a bounded piece of its stderr, in which the
// usual reasons are told as what they are.
import { plainText } from '../output/plain-text.ts';

const KEPT_CHARACTERS = 65_536;
const SHOWN_LINES = 10;

const REASONS: readonly (readonly [RegExp, string])[] = [
  [/No space left on device|Disk quota exceeded|Wrote only \d+ of \d+ bytes/, 'the disk of the sandbox is full'],
  [/Permission denied|Operation not permitted/, 'permission denied: commands run as the user of the sandbox'],
  [/Read-only file system/, 'the file system there cannot be written to'],
  [/File name too long/, 'a name is too long there'],
];

/** Reads a stream to its end; resolves with its first part. */
export async function textOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of stream) if (text.length < KEPT_CHARACTERS) text += decoder.decode(chunk, { stream: true });

  return text.slice(0, KEPT_CHARACTERS);
}

/** The lines that say something, of which there may be none. */
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
    : [...lines.slice(0, SHOWN_LINES), `and ${lines.length - SHOWN_LINES} lines more`];
}

/** Why it failed, in a line. */
export function reasonOf(said: string): string {
  const known = REASONS.find(([pattern]) => pattern.test(said));
  const [line] = linesOf(said);
  return known?.[1] ?? line ?? 'the other end failed and did not say why';
}
