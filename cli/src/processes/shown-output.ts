// Writes the output of a process, with notes between its lines.
import { once } from 'node:events';
import type { ProcessOutput } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { plainJson } from '../output/plain-text.ts';

export class ShownOutput {
  readonly #context: Pick<CliContext, 'out' | 'stdout' | 'stderr'>;
  /** Whether the last byte ended a line. */
  #isLineEnd = true;

  constructor(context: Pick<CliContext, 'out' | 'stdout' | 'stderr'>) {
    this.#context = context;
  }

  /** Writes the bytes to their stream, or with `--json` a line. Resolves when more is accepted. */
  async write(chunk: ProcessOutput): Promise<void> {
    const { out, stdout, stderr } = this.#context;
    if (out.json) {
      await out.bytes(`${plainJson(jsonOf(chunk))}\n`);
      return;
    }
    const { bytes, stream, lostBytes } = chunk;
    if (lostBytes > 0) this.note(lossText(chunk));
    this.#isLineEnd = bytes.at(-1) === 0x0a;
    const target = stream === 'stderr' ? stderr : stdout;
    if (!target.write(bytes)) await once(target, 'drain');
  }

  /** In a terminal, begins a line. */
  note(text: string): void {
    const { out, stderr } = this.#context;
    const isBroken = stderr.isTTY && !this.#isLineEnd;
    this.#isLineEnd = true;
    out.hint(isBroken ? `\n${text}` : text);
  }
}

export function lossText({ lostBytes, stream }: Pick<ProcessOutput, 'lostBytes' | 'stream'>): string {
  const bytes = lostBytes === 1 ? '1 byte' : `${lostBytes} bytes`;
  return `berth: ${bytes} of ${stream === 'output' ? 'the output' : stream} here are missing: no longer kept`;
}

/** The chunk of the API. */
function jsonOf({ stream, offset, lostBytes, bytes, cursor }: ProcessOutput): object {
  const text = textOf(bytes);
  const content =
    text === null
      ? { data: Buffer.from(bytes).toString('base64'), encoding: 'base64' }
      : { data: text, encoding: 'utf8' };
  return { stream, offset, lostBytes, ...content, cursor };
}

/** null for bytes that are no text. */
function textOf(bytes: Uint8Array): string | null {
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
