// Flushes files of a session, so that what a response acknowledged survives the loss of the VM.
import { open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { nullIf } from '@berth/os/errors.ts';
import { SerialQueue } from '@berth/os/serial-queue.ts';
import type { SessionReader } from '../bridge/files.ts';

export class SessionFlush {
  readonly #reader: SessionReader;
  readonly #queue = new SerialQueue();
  #flushedSeq = 0;

  constructor(reader: SessionReader) {
    this.#reader = reader;
  }

  /** Resolves when a boot of the disk finds the session. */
  async session(): Promise<void> {
    const { folder } = this.#reader;
    await flushFiles(folder, ['session.json', 'turns.jsonl', 'messages.jsonl', 'output.jsonl']);
    await flush(dirname(folder));
  }

  /** Resolves when a boot of the disk finds the replies up to the number. */
  async replies(seq: number): Promise<void> {
    await this.#queue.run(async () => {
      if (this.#flushedSeq >= seq) return;

      const lastSeq = this.#reader.lastSeq();
      await flushFiles(this.#reader.folder, ['output-old.jsonl', 'output.jsonl']);
      this.#flushedSeq = lastSeq;
    });
  }
}

/** Flushes the files that exist, and the entries of their folder. */
async function flushFiles(folder: string, names: readonly string[]): Promise<void> {
  await Promise.all(names.map((name) => flush(join(folder, name))));
  await flush(folder);
}

async function flush(path: string): Promise<void> {
  const file = await open(path, 'r').catch(nullIf('ENOENT'));
  if (file === null) return;

  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
