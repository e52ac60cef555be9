// Uploads a large file by the file routes, and continues at its byte: after a broken connection,
// and when the same command runs again.
import { basename, dirname, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { BerthError, type SandboxFiles } from '@berth/sdk';
import { startCommand } from '../connections/streams.ts';
import { bytes as bytesText } from '../output/amount.ts';
import { CliFailure } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import type { Connection } from '../service/connection.ts';
import type { PathThere } from './endpoint.ts';
import { LocalFile, LocalFileChanged } from './local-file.ts';
import { hashingScript, placingScript, resolvingScript } from './guest-scripts.ts';
import { textOf, uploadFailure } from './remote-failure.ts';

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
  options: Options,
): Promise<boolean> {
  const { signal } = options;
  const what = `${sandbox}:${plainText(path)}`;
  const run = async (command: string): Promise<Buffer> => {
    const remote = await startCommand(connection, { sandboxId: sandbox, command }, signal);
    const [stdout, stderr, { exitCode }] = await Promise.all([
      buffer(remote.stdout),
      textOf(remote.stderr),
      remote.exited,
      remote.stdin.close(),
    ]);
    if (exitCode !== 0) throw uploadFailure(stderr, { sandbox, path });
    return stdout;
  };
  const target = textIn(await run(resolvingScript({ path, name })));
  if (target === null) return false;
  const local = await LocalFile.open(source);
  try {
    const part = join(dirname(target), local.partName(basename(target)));
    const connected = async (): Promise<SandboxFiles> =>
      (await connection.berth.sandboxes.get(sandbox, { signal })).files;
    if (!(await send(connected, local, part, { run, what, options }))) return false;
    const { size, mode, mtime } = local;
    await settled(() => run(placingScript({ part, target, size, mode, mtime })), options.signal);
    return true;
  } finally {
    await local.close();
  }
}

interface Sending {
  run: (command: string) => Promise<Buffer>;
  /** The target in messages. */
  what: string;
  options: Options;
}

/** Completes the part. Resolves with false if the service refused it before a byte was sent. */
async function send(
  connected: () => Promise<SandboxFiles>,
  local: LocalFile,
  part: string,
  { run, what, options: { note, passed, signal } }: Sending,
): Promise<boolean> {
  let isBegun = false;
  let isBroken = false;
  /** Whether the part has bytes that no response of this run confirmed. */
  let isResumed = false;
  let files: SandboxFiles | undefined;
  try {
    files = await connected();
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
    return true;
  } catch (error) {
    if (error instanceof LocalFileChanged || error instanceof PartDiffers)
      await files?.delete(part, { signal }).catch(() => undefined);
    if (!(error instanceof BerthError) || signal.aborted) throw error;
    if (!isBegun && error.status !== undefined && !error.retryable) return false;
    throw new CliFailure(`${what}: the upload broke off: ${plainText(error.message)}`, {
      remedy: 'run the same command again: it continues where this one ended',
      cause: error,
    });
  }
}

class PartDiffers extends CliFailure {}

/** Compares the bytes of a part with the file's. Other uploads and programs can write to a part. */
async function compare(local: LocalFile, part: string, run: (command: string) => Promise<Buffer>): Promise<void> {
  const [own, there] = await Promise.all([local.sha256(), run(hashingScript(part))]);
  local.verify();
  if (there.toString() === own) return;
  throw new PartDiffers(`${plainText(part)} has other bytes than the file: nothing was written to the target`, {
    remedy: 'run the command again: it begins anew',
  });
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
