// Uploads in parts, which continue at their byte after a failure.
import type { FileStat } from '../generated/raw/index.ts';
import { BerthError, errorWith } from '../transport/errors.ts';
import { Pauses } from '../transport/pauses.ts';
import type { CallOptions } from '../transport/transport.ts';

/** Bytes of a request: a hundredth of the source within these bounds. */
const LEAST_BYTES = 8_388_608;
const MOST_BYTES = 33_554_432;
const PART_MODE = '0600';
/** Failures after which the size of the file tells where to continue. */
const PASSING: readonly unknown[] = ['connection_failed', 'upload_stalled', 'file_changed'];
/** Characters of the target's name in the name of its part: in UTF-8 far below 255 bytes. */
const NAME_SHOWN = 40;

/** Content of known length, such as a `Blob` or `File`, which is read in parts. */
export interface UploadSource {
  readonly size: number;
  /** Returns exactly these bytes. */
  slice(from: number, to: number): Blob | Promise<Blob>;
}

export interface ContinueOptions extends Pick<CallOptions, 'signal'> {
  /** Permission bits in octal of a file that the upload creates. */
  mode?: string | undefined;
  /** Bytes of a request. By default a hundredth of the source, but 8 to 32 MiB. */
  partBytes?: number | undefined;
  /** Called with the bytes of the file so far: at the start, and after each request. */
  onProgress?: ((bytes: number) => void) | undefined;
  /** Called before each repetition after a failure. */
  onRetry?: ((error: BerthError) => void) | undefined;
}

export interface ResumableOptions extends ContinueOptions {
  /**
   * Names the content: another text for another content. Required unless the source is a `File`,
   * which has name, size and time of change.
   */
  key?: string | undefined;
}

export interface UploadedPath {
  path: string;
  size: number;
}

type Signal = Pick<CallOptions, 'signal'>;

/** The calls of an upload. */
interface Files {
  append(
    path: string,
    data: Blob | string,
    options: { offset: number; mode?: string | undefined } & Signal,
  ): Promise<unknown>;
  stat(path: string, options: Signal): Promise<FileStat>;
  chmod(path: string, mode: string, options: Signal): Promise<unknown>;
  move(from: string, to: string, options: { replace: boolean } & Signal): Promise<unknown>;
  upload(path: string, data: Blob, options: { mode?: string | undefined } & Signal): Promise<UploadedPath>;
}

/** See `files.continueUpload`. */
export async function continueUpload(
  files: Files,
  path: string,
  source: UploadSource,
  options: ContinueOptions,
): Promise<void> {
  const { mode, signal, onProgress } = options;
  const { size } = checked(path, source);
  const { partBytes = Math.min(Math.max(LEAST_BYTES, size / 100), MOST_BYTES) } = options;
  if (!(partBytes >= 1)) throw wrong('configuration', `partBytes: ${partBytes}`);
  let most = -1;
  await persist(options, async (succeeded) => {
    const found = await statOrNull(files, path, signal);
    let at = found?.size ?? 0;
    if (found !== null && found.kind !== 'file') throw notAFile(path);
    if (at > size) throw wrong('file_exists', `${path} has ${at} of ${size} bytes. Delete it`);
    // Waits for an earlier request that may still write, and gets a refusal before a body is sent.
    // A complete part may have its final mode, without permission to write.
    if (at < size || found === null) await files.append(path, '', { offset: at, mode, signal });
    for (;;) {
      if (at > most) {
        most = at;
        succeeded();
        onProgress?.(at);
      }
      if (at === size) return;
      const end = Math.min(size, at + Math.floor(partBytes));
      const part = await source.slice(at, end);
      if (part.size !== end - at) throw wrong('configuration', `the source ends before its ${size} bytes`);
      await files.append(path, part, { offset: at, signal });
      at = end;
    }
  });
}

/** See `files.uploadResumable`. */
export async function uploadResumable(
  files: Files,
  path: string,
  source: UploadSource,
  options: ResumableOptions,
): Promise<UploadedPath> {
  const { mode, signal } = options;
  const part = partOf(path, checked(path, source), options.key);
  const atOnce = async (): Promise<UploadedPath> =>
    await files.upload(path, await source.slice(0, source.size), { mode, signal });
  try {
    const target = await statOrNull(files, path, signal);
    if (target?.kind === 'link') return await atOnce();
    if (target !== null && target.kind !== 'file') throw notAFile(path);
    await continueUpload(files, part, source, { ...options, mode: PART_MODE });
    let attempts = 0;
    await persist(options, async () => {
      attempts += 1;
      try {
        await files.chmod(part, mode ?? target?.mode.slice(1) ?? '0644', { signal });
        await files.move(part, path, { replace: true, signal });
      } catch (error) {
        // The response to an earlier attempt was lost.
        if (attempts === 1 || codeOf(error) !== 'file_not_found') throw error;
      }
    });
    return await files.stat(path, { signal });
  } catch (error) {
    // A sandbox of an earlier release.
    if (codeOf(error) === 'file_call_unsupported') return await atOnce();
    throw error;
  }
}

/** Repeats work that has no second effect, as long as it succeeds at times. */
async function persist(
  { signal = new AbortController().signal, onRetry }: ContinueOptions,
  work: (succeeded: () => void) => Promise<void>,
): Promise<void> {
  const pauses = new Pauses(signal, onRetry);
  for (;;) {
    try {
      return await work(() => pauses.succeeded());
    } catch (error) {
      const passes = PASSING.includes(codeOf(error));
      await pauses.afterFailure(passes ? errorWith(error as BerthError, { retryable: true }) : error, {
        isActive: false,
      });
    }
  }
}

async function statOrNull(files: Files, path: string, signal: AbortSignal | undefined): Promise<FileStat | null> {
  return await files.stat(path, { signal }).catch((error: unknown) => {
    if (codeOf(error) !== 'file_not_found') throw error;
    return null;
  });
}

/** Throws for a value that is no source, such as undefined. */
function checked(path: string, source: UploadSource): UploadSource {
  const found: Partial<UploadSource> | null | undefined = source;
  if (typeof found?.slice === 'function' && Number.isSafeInteger(found.size)) return source;
  throw wrong('configuration', `cannot upload ${path}: the source must have a size and a slice, as a Blob has`);
}

/** Path of the part of an upload: the same for the same content and target. */
function partOf(path: string, source: UploadSource, key: string | undefined): string {
  const cut = path.lastIndexOf('/') + 1;
  const name = path.slice(cut);
  if (/^\.{0,2}$/.test(name)) throw notAFile(path);
  const { name: own, lastModified } = source as Partial<File>;
  if (key === undefined && lastModified === undefined)
    throw wrong('configuration', 'a Blob is resumed by `key` only: pass one, or a File');
  const content = digest(JSON.stringify([name, source.size, key ?? [own, lastModified]]));
  return `${path.slice(0, cut)}.${Array.from(name).slice(0, NAME_SHOWN).join('')}.berth-part-${content}`;
}

/** A polynomial hash, not cryptographic: `crypto.subtle` is absent over plain HTTP. */
function digest(text: string): string {
  let hash = 1n;
  for (const character of text)
    hash = BigInt.asUintN(64, hash * 0x100000001b3n + BigInt(character.codePointAt(0) ?? 0));
  return hash.toString(36);
}

function codeOf(error: unknown): unknown {
  return (error as Partial<BerthError>).code;
}

function notAFile(path: string): BerthError {
  return wrong('not_a_file', `${path} is not the path of a file`);
}

function wrong(code: string, message: string): BerthError {
  return new BerthError(message, { code });
}
