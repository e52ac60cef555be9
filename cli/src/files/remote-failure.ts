// Summarises the stderr of the sandbox side of a copy.
import { posix } from 'node:path';
import { shellWord } from '@berth/machine/output/command-hint.ts';
import { CliFailure } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import type { PathThere } from './endpoint.ts';

const KEPT_CHARACTERS = 65_536;
const SHOWN_LINES = 10;

const DISK_FULL = 'the disk of the sandbox is full';

const REASONS: readonly (readonly [RegExp, string])[] = [
  [/No space left on device|Disk quota exceeded|Wrote only \d+ of \d+ bytes/, DISK_FULL],
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

/** Failure of an upload to a path, with a remedy if there is one. */
export function uploadFailure(said: string, { sandbox, path }: PathThere): CliFailure {
  const reason = reasonOf(said);
  const remedy = remedyOf(reason, sandbox, path);
  return new CliFailure(`${sandbox}:${plainText(path)}: ${reason}`, remedy === undefined ? {} : { remedy });
}

/** Reasons of folders are those of guest-scripts.ts. */
function remedyOf(reason: string, sandbox: string, path: string): string | undefined {
  const mkdir = (folder: string): string => `berth files mkdir ${sandbox} ${shellWord(plainText(folder))} creates it`;
  if (reason === DISK_FULL)
    return `delete files in the sandbox, or enlarge its disk with berth sandbox resize ${sandbox} --disk-gb N`;
  const target = path.replace(/\/+\.?\/*$/, '');
  if (reason === 'no such folder') return mkdir(target);
  return reason === 'the parent folder does not exist' ? mkdir(posix.dirname(target)) : undefined;
}
