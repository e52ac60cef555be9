// Reads a message in a terminal, with line editing and history. Pasted lines stay one message.
import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';
import type { CliContext } from '../program/context.ts';

const PASTE = { begin: '\u001B[200~', end: '\u001B[201~', on: '\u001B[?2004h', off: '\u001B[?2004l' };
/** Shown for a line end in the edited line. */
const LINE_END = '␊';
const MOST_HISTORY = 200;

/** `interrupted`: Ctrl-C on an empty line. `closed`: Ctrl-D. */
type ReadMessage = { text: string } | 'interrupted' | 'closed';

/** Messages of a conversation, edited on stderr. */
export class MessageLine {
  readonly #streams: Pick<CliContext, 'stdin' | 'stderr'>;
  #history: string[] = [];

  constructor(streams: Pick<CliContext, 'stdin' | 'stderr'>) {
    this.#streams = streams;
  }

  /** Rejects with the signal's reason. @param draft initial text */
  async read(question: string, draft: string, signal: AbortSignal): Promise<ReadMessage> {
    const { stdin, stderr } = this.#streams;
    const read = Promise.withResolvers<ReadMessage>();
    const input = Object.assign(new PassThrough(), {
      setRawMode: (isRaw: boolean): void => {
        if (stdin.destroyed) return;
        stdin.setRawMode(isRaw);
        stderr.write(isRaw ? PASTE.on : PASTE.off);
      },
    });
    const pasted = new PastedLines();
    const onKeys = (keys: string): void => void input.write(pasted.convert(keys));
    const onEnd = (): void => read.resolve('closed');
    const onAbort = (): void => read.reject(signal.reason as Error);
    stdin.setEncoding('utf8').on('data', onKeys).once('end', onEnd).resume();
    signal.addEventListener('abort', onAbort, { once: true });
    const editor = createInterface({
      input,
      output: stderr,
      terminal: true,
      history: this.#history,
      historySize: MOST_HISTORY,
      prompt: question,
    });
    editor.on('history', (history) => (this.#history = history));
    editor.on('line', (line) => read.resolve({ text: line.replaceAll(LINE_END, '\n') }));
    editor.on('close', () => read.resolve('closed'));
    // After Ctrl-Z; readline paused its input.
    editor.on('SIGCONT', () => editor.prompt(true));
    editor.on('SIGINT', () => {
      if (editor.line === '') read.resolve('interrupted');
      else editor.write(null, { ctrl: true, name: 'e' });
      editor.write(null, { ctrl: true, name: 'u' });
    });
    try {
      if (signal.aborted) onAbort();
      editor.prompt();
      if (draft !== '') editor.write(draft.replaceAll(/\r?\n/g, LINE_END));
      return await read.promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
      stdin.off('data', onKeys).off('end', onEnd).pause();
      editor.close();
    }
  }
}

/** Replaces line ends inside a bracketed paste, which would submit the line. */
class PastedLines {
  #isInside = false;
  /** Start of a marker at the end of the last chunk. */
  #rest = '';

  convert(keys: string): string {
    let converted = '';
    for (let left = this.#rest + keys; ;) {
      const marker = this.#isInside ? PASTE.end : PASTE.begin;
      const at = left.indexOf(marker);
      if (at === -1) {
        const kept = overlap(left, marker);
        this.#rest = left.slice(left.length - kept);
        return converted + this.#text(left.slice(0, left.length - kept));
      }
      converted += this.#text(left.slice(0, at));
      left = left.slice(at + marker.length);
      this.#isInside = !this.#isInside;
    }
  }

  #text(keys: string): string {
    return this.#isInside ? keys.replaceAll(/\r\n?|\n/g, LINE_END).replaceAll('\t', '    ') : keys;
  }
}

/** Length of the longest end of the text with which the marker begins; a lone escape is a key. */
function overlap(text: string, marker: string): number {
  for (let length = Math.min(text.length, marker.length - 1); length > 1; length -= 1)
    if (marker.startsWith(text.slice(-length))) return length;
  return 0;
}
