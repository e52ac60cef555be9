// A piece of a process's output.
import type { ProcessOutputChunk } from '../generated/raw/index.ts';
import { fromBase64 } from '../transport/base64.ts';

type Content = Pick<ProcessOutputChunk, 'data' | 'encoding'>;

/** Consecutive bytes of an output. */
export class ProcessOutput {
  /** `output`: of a terminal, instead of the other two. */
  readonly stream: ProcessOutputChunk['stream'];
  /** Offset of its first byte in the stream. */
  readonly offset: number;
  /** Bytes before it that are no longer kept, or had no room on the disk. */
  readonly lostBytes: number;
  /** Continues behind it, as `since` of a later call or program. */
  readonly cursor: string;
  /**
   * The bytes as UTF-8, with U+FFFD for those that are none. Cut between characters, unless it has
   * such bytes or NUL.
   */
  readonly text: string;
  readonly #content: Content | Uint8Array;

  /** Constructed by the SDK. */
  constructor(chunk: Omit<ProcessOutputChunk, keyof Content>, content: Content | Uint8Array) {
    ({ stream: this.stream, offset: this.offset, lostBytes: this.lostBytes, cursor: this.cursor } = chunk);
    this.#content = content;
    this.text =
      'data' in content && content.encoding === 'utf8'
        ? content.data
        : new TextDecoder('utf-8', { ignoreBOM: true }).decode(this.bytes);
  }

  get bytes(): Uint8Array {
    if (this.#content instanceof Uint8Array) return this.#content;
    const { data, encoding } = this.#content;
    return encoding === 'utf8' ? new TextEncoder().encode(data) : fromBase64(data);
  }

  /** Its text. */
  toString(): string {
    return this.text;
  }
}
