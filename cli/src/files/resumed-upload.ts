// Uploads a large file by the file routes, and continues at its byte: after a broken connection,
// and when the same command runs again.
import { createHash } from 'node:crypto';
import { createReadStream, openAsBlob, statSync, type BigIntStats } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { BerthError, type SandboxFiles, type UploadSource } from '@berth/sdk';
import { startCommand } from '../connections/streams.ts';
import { bytes as bytesText } from '../output/amount.ts';
import { CliFailure } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import type { Connection } from '../service/connection.ts';
import type { PathThere } from './endpoint.ts';
import { hashingScript, placingScript, resolvingScript } from './guest-scripts.ts';
import { reasonOf, textOf } from './remote-failure.ts';

/** Smaller files are sent at once, as an archive. */
export const RESUMED_BYTES = 8_388_608;
const PART_MODE = '0600';
const PLACE = { attempts: 6, firstWaitMs: 250 };
/** Failures of a connection to a command, whose outcome is unknown. */
const BROKEN: ReadonlySet<string> = new Set(['connection_failed', 'stream_closed']);

interface Options {
  note: (text: string) => void;
  /** Called with the bytes in the sandbox so far. */
  passed: (bytes: number) => void;
  signal: AbortSignal;
}

/**
 * Uploads a local file. Resolves with false if this sandbox or caller cannot do so and nothing was
 * sent: a sandbox of an earlier release, a missing permission, a path that is not UTF-8.
 */
export async function uploadResumed(
  connection: Connection,
  source: string,
  { sandbox, path, name }: PathThere & { name: string },
  { note, passed, signal }: Options,
): Promise<boolean> {
  const what = `${sandbox}:${plainText(path)}`;
  const run = async (command: string): Promise<Buffer> => {
    const remote = await startCommand(connection, { sandboxId: sandbox, command }, signal);
    const [stdout, stderr, { exitCode }] = await Promise.all([
      buffer(remote.stdout),
      textOf(remote.stderr),
      remote.exited,
      remote.stdin.close(),
    ]);
    if (exitCode !== 0) throw new CliFailure(`${what}: ${reasonOf(stderr)}`);
    return stdout;
  };
  const target = textIn(await run(resolvingScript({ path, name })));
  if (target === null) return false;
  const local = await LocalFile.open(source);
  const part = join(dirname(target), local.partName(basename(target)));
  let files: SandboxFiles | undefined;
  let isBegun = false;
  /** Whether the part has bytes that no response of this run confirmed. */
  let isResumed = false;
  let isBroken = false;
  try {
    ({ files } = await connection.berth.sandboxes.get(sandbox, { signal }));
    await files.continueUpload(part, local, {
      mode: PART_MODE,
      signal,
      onProgress: (bytes) => {
        if (bytes > 0 && (isBroken || !isBegun)) {
          note(`berth: ${what}: continuing at ${bytesText(bytes)} of ${bytesText(local.size)}`);
          isResumed = true;
        }
        [isBegun, isBroken] = [true, false];
        passed(bytes);
      },
      onRetry: () => (isBroken = true),
    });
    local.verify();
    if (isResumed || isBroken) {
      note(`berth: ${what}: comparing the SHA-256 of both files`);
      await settled(() => compare(local, part, run), signal);
    }
  } catch (error) {
    if (error instanceof Worthless) await files?.delete(part, { signal }).catch(() => undefined);
    if (!(error instanceof BerthError) || signal.aborted) throw error;
    if (!isBegun && error.status !== undefined && !error.retryable) return false;
    throw new CliFailure(`${what}: the upload broke off: ${plainText(error.message)}`, {
      remedy: 'run the same command again: it continues where this one ended',
      cause: error,
    });
  }
  const { size, mode, mtime } = local;
  await settled(() => run(placingScript({ part, target, size, mode, mtime })), signal);
  return true;
}

/** Compares the bytes of a part with the file's. Other uploads and programs can write to a part. */
async function compare(local: LocalFile, part: string, run: (command: string) => Promise<Buffer>): Promise<void> {
  const [own, there] = await Promise.all([local.sha256(), run(hashingScript(part))]);
  local.verify();
  if (there.toString() === own) return;
  throw new Worthless(`${plainText(part)} has other bytes than the file: nothing was written to the target`, {
    remedy: 'run the command again: it begins anew',
  });
}

/** A failure after which the part is deleted. */
class Worthless extends CliFailure {}

/** A local file, which must not change while it is read. */
class LocalFile implements UploadSource {
  readonly #path: string;
  readonly #stat: BigIntStats;
  readonly #content: Blob;

  private constructor(path: string, stat: BigIntStats, content: Blob) {
    this.#path = path;
    this.#stat = stat;
    this.#content = content;
  }

  static async open(path: string): Promise<LocalFile> {
    return new LocalFile(path, statSync(path, { bigint: true }), await openAsBlob(path));
  }

  get size(): number {
    return Number(this.#stat.size);
  }

  get mode(): number {
    return Number(this.#stat.mode);
  }

  get mtime(): number {
    return Math.floor(Number(this.#stat.mtimeMs) / 1_000);
  }

  /** Name of the part: the same for the same target until this file changes. */
  partName(target: string): string {
    const key = [...versionOf(this.#stat), target].join('\0');
    return `.berth-cp-${createHash('sha256').update(key).digest('hex').slice(0, 24)}`;
  }

  slice(from?: number, to?: number): Blob {
    this.verify();
    return this.#content.slice(from, to);
  }

  async sha256(): Promise<string> {
    const hash = createHash('sha256');
    for await (const chunk of createReadStream(this.#path)) hash.update(chunk as Buffer);
    return hash.digest('hex');
  }

  /** Throws if the file has changed since it was opened. */
  verify(): void {
    const now = statSync(this.#path, { bigint: true, throwIfNoEntry: false });
    if (now !== undefined && versionOf(now).join() === versionOf(this.#stat).join()) return;
    throw new Worthless(`${plainText(this.#path)} changed while it was copied: nothing was written to the target`, {
      remedy: 'run the command again when the file is complete',
    });
  }
}

/** Differs after each change of the content: no program can set the time of the inode. */
function versionOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): bigint[] {
  return [dev, ino, size, mtimeNs, ctimeNs];
}

/** Repeats work without a second effect while its connection breaks. */
async function settled(work: () => Promise<unknown>, signal: AbortSignal): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await work();
      return;
    } catch (error) {
      const isBroken = error instanceof BerthError && (error.retryable || BROKEN.has(error.code));
      if (!isBroken || attempt === PLACE.attempts || signal.aborted) throw error;
      await delay(PLACE.firstWaitMs * 2 ** attempt, undefined, { signal });
    }
  }
}

/** Null unless the bytes are UTF-8. */
function textIn(bytes: Buffer): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
