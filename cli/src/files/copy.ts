// `berth cp`: copies a file or folder between this machine and a sandbox, as a tar stream.
import { lstat, realpath, stat } from 'node:fs/promises';
import type { Stats } from 'node:fs';
import { dirname, join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { BerthError, type SandboxCommand } from '@berth/sdk';
import { startCommand } from '../connections/streams.ts';
import type { CliContext } from '../program/context.ts';
import { ArchiveBroken, ArchiveReader } from './archive.ts';
import { endpoints, nameOf, type PathThere } from './endpoint.ts';
import { packingScript, unpackingScript } from './guest-scripts.ts';
import { pack } from './pack.ts';
import { linesOf, reasonOf, textOf, uploadFailure } from './remote-failure.ts';
import { downloadFile, resumable } from './resumed-file.ts';
import { RESUMED_BYTES, uploadResumed } from './resumed-upload.ts';
import { Refused, unpack, type Unpacked } from './unpack.ts';
import { CliFailure, EXIT } from '../output/failure.ts';
import { bytes as bytesText } from '../output/amount.ts';
import { plainText } from '../output/plain-text.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import type { Input } from '../program/command-spec.ts';

export interface CopyOptions {
  followLink?: true;
}

const SKIPPED_SHOWN = 20;
/** Time for a command to exit after sending broken output. */
const EXIT_WITHIN_MS = 5_000;

/** Resolves with 1 if any entry was skipped. */
export async function copy(
  context: CliContext,
  { args: [from = '', to = ''], options }: Input<CopyOptions>,
): Promise<number> {
  const ends = endpoints(from, to);
  const follow = options.followLink === true;
  const copying = new Copying(context);
  if (ends.into === null) await copying.download(ends.from, ends.to, follow);
  else await copying.upload(ends.from, ends.into, follow);
  return copying.end();
}

class Copying {
  readonly #context: CliContext;
  #left = 0;

  constructor(context: CliContext) {
    this.#context = context;
  }

  /** Returns the exit code. */
  end(): number {
    if (this.#left > SKIPPED_SHOWN)
      this.#context.out.note(`berth: ${this.#left - SKIPPED_SHOWN} more entries were not copied`);
    return this.#left === 0 ? EXIT.ok : EXIT.failed;
  }

  async upload(source: string, { sandbox, path }: PathThere, follow: boolean): Promise<void> {
    const { connect, signal } = this.#context;
    // As in cp(1), a trailing slash follows a symlink.
    const through = follow || /\/\.?$/.test(source);
    const found = await here(source, () => (through ? stat(source) : lstat(source)));
    const kind = found.isDirectory() ? 'folder' : found.isSymbolicLink() ? 'link' : 'file';
    if (kind === 'file' && !found.isFile())
      throw new CliFailure(`${plainText(source)} is not a file, folder or symlink`);
    const id = await findSandbox(this.#context, sandbox);
    const place = { path, name: nameOf(source), kind, mode: found.mode } as const;
    await this.#withProgress(`copying to ${id}`, async (passed) => {
      if (kind === 'file' && found.size >= RESUMED_BYTES) {
        const note = (text: string): void => this.#context.out.note(text);
        const target = { sandbox: id, path, name: place.name };
        if (await uploadResumed(await connect(), source, target, { note, passed, signal })) return;
      }
      const remote = await startCommand(await connect(), { sandboxId: id, command: unpackingScript(place) }, signal);
      await remote.stdout.cancel();
      const errorText = textOf(remote.stderr);
      errorText.catch(() => undefined);
      let sent = 0;
      const packed = pack(source, {
        root: 'r',
        follow: through,
        skipped: (file, why) => this.#skipped(file.toString(), why),
        passed: (count) => passed((sent += count)),
      });
      try {
        await pipeline(packed, Writable.fromWeb(remote.stdin), { signal });
      } catch (error) {
        // The command exited or the connection broke: reported below.
        if (!(error instanceof BerthError)) {
          // Close without the archive's end, so that the sandbox discards it.
          remote.close();
          signal.throwIfAborted();
          throw new CliFailure(`cannot read ${plainText(source)}: ${plainText((error as Error).message)}`, {
            cause: error,
          });
        }
      }
      const { exitCode } = await remote.exited;
      if (exitCode !== 0) throw uploadFailure(await errorText, { sandbox: id, path });
    });
  }

  async download({ sandbox, path }: PathThere, to: string, follow: boolean): Promise<void> {
    const { connect, signal, out } = this.#context;
    const place = await placeHere(to, nameOf(path));
    const id = await findSandbox(this.#context, sandbox);
    await this.#withProgress(`copying from ${id}`, async (passed) => {
      const { berth } = await connect();
      const source = await resumable(berth, { sandbox: id, path }, signal);
      if (source !== null) {
        const where = { beside: place.beside, target: place.target({ kind: 'file' }) };
        const options = { what: `${id}:${path}`, note: (text: string) => out.note(text), passed, signal };
        try {
          return await downloadFile(source, where, options);
        } catch (error) {
          throw localFailure(error, to);
        }
      }
      const command = packingScript(path, { follow });
      const remote = await startCommand(await connect(), { sandboxId: id, command }, signal);
      await remote.stdin.close();
      const errorText = textOf(remote.stderr);
      errorText.catch(() => undefined);
      const stdout = Readable.fromWeb(remote.stdout);
      // Closing the command fails its output, also before the first read.
      stdout.on('error', () => undefined);
      const reader = new ArchiveReader(stdout as AsyncIterable<Buffer>);
      const options = {
        skipped: (file: Buffer, why: string) => this.#skipped(file.toString(), why),
        passed,
        signal,
      };
      try {
        const came = await unpack(reader, place.beside, options, async (unpacked) => {
          await this.#ended(remote, `${id}:${plainText(path)}`, errorText);
          await unpacked.place(place.target(unpacked));
        });
        if (!came) await this.#ended(remote, `${id}:${plainText(path)}`, errorText);
      } catch (error) {
        throw await this.#explainFailure(error, remote, { what: `${id}:${plainText(path)}`, to, errorText });
      } finally {
        remote.close();
      }
    });
  }

  /** Data arrived: entries that tar skipped are reported, not fatal. */
  async #ended(remote: SandboxCommand, what: string, errorText: Promise<string>): Promise<void> {
    const { exitCode } = await remote.exited;
    if (exitCode === 0) return;
    for (const line of linesOf(await errorText)) this.#skipped(what, line);
    if (this.#left === 0) throw new CliFailure(`${what}: ${reasonOf(await errorText)}`);
  }

  async #explainFailure(
    error: unknown,
    remote: SandboxCommand,
    { what, to, errorText }: { what: string; to: string; errorText: Promise<string> },
  ): Promise<unknown> {
    if (error instanceof CliFailure || error instanceof BerthError || this.#context.signal.aborted) return error;
    if (error instanceof Refused) return new CliFailure(`${what}: ${plainText(error.message)}`);
    if (error instanceof ArchiveBroken) {
      // Either the command failed and wrote a reason, or the connection broke.
      const silent = delay(EXIT_WITHIN_MS, { exitCode: 0 }, { ref: false });
      const { exitCode } = await Promise.race([remote.exited, silent]);
      return new CliFailure(
        `${what}: ${exitCode === 0 ? `invalid archive: ${error.message}` : reasonOf(await errorText)}`,
      );
    }
    return localFailure(error, to);
  }

  #skipped(what: string, why: string): void {
    this.#left += 1;
    if (this.#left <= SKIPPED_SHOWN) this.#context.out.note(`berth: ${plainText(what)}: ${plainText(why)}`);
  }

  /** Shows progress if stderr is a terminal. */
  async #withProgress(title: string, work: (passed: (bytes: number) => void) => Promise<void>): Promise<void> {
    const { out, stderr } = this.#context;
    if (stderr.isTTY) await out.step(title, async (report) => await work((bytes) => report(bytesText(bytes))));
    else await work(() => undefined);
  }
}

interface Place {
  /** Folder on the file system of the target. */
  beside: string;
  /** Throws a CliFailure if the target does not accept this kind. */
  target: (copied: Pick<Unpacked, 'kind'>) => string;
}

/** @param name of the source; empty to copy its contents */
async function placeHere(to: string, name: string): Promise<Place> {
  const shown = plainText(to);
  const found = await statOrNull(to);
  if (found === null) {
    const parent = dirname(to.replace(/\/+\.?\/*$/, '') || '/');
    const above = await here(parent, () => stat(parent));
    if (!above.isDirectory()) throw new CliFailure(`${plainText(parent)} is not a folder`);
    if ((await lstatOrNull(to)) !== null) throw new CliFailure(`${shown} is a dangling symlink`);
    const asFolder = /\/\.?$/.test(to);
    return {
      beside: parent,
      target: ({ kind }) => {
        if (kind === 'file' && asFolder) throw new CliFailure(`${shown}: no such folder`);
        return asFolder ? to.replace(/\/+\.?$/, '') : to;
      },
    };
  }
  if (!found.isDirectory()) {
    if (!found.isFile()) throw new CliFailure(`${shown} is not a file or folder`);
    const file = await realpath(to);
    return {
      beside: dirname(file),
      target: ({ kind }) => {
        if (kind === 'folder') throw new CliFailure(`${shown} is not a folder, but the source is`);
        return file;
      },
    };
  }
  const target = name === '' ? to : join(to, name);
  const inIt = name === '' ? found : await statOrNull(target);
  if (inIt?.isDirectory() === true) {
    return {
      beside: await realpath(target),
      target: ({ kind }) => {
        if (kind === 'file')
          throw new CliFailure(`${plainText(target)}: the target is a folder, but the source is a file`);
        return target;
      },
    };
  }
  return {
    beside: to,
    target: ({ kind }) => {
      if (kind === 'folder' && inIt !== null)
        throw new CliFailure(`${plainText(target)} is not a folder, but the source is`);
      return target;
    },
  };
}

/** Names the local path of a failed system call. */
function localFailure(error: unknown, to: string): unknown {
  const { code, syscall, message } = error as NodeJS.ErrnoException;
  if (code === undefined || syscall === undefined) return error;
  const why = code === 'ENOSPC' ? 'the local disk is full' : plainText(message);
  return new CliFailure(`${plainText(to)}: ${why}`, { cause: error });
}

async function statOrNull(path: string): Promise<Stats | null> {
  return await orNull(() => stat(path));
}

async function lstatOrNull(path: string): Promise<Stats | null> {
  return await orNull(() => lstat(path));
}

async function orNull(look: () => Promise<Stats>): Promise<Stats | null> {
  try {
    return await look();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new CliFailure(plainText((error as Error).message), { cause: error });
  }
}

async function here(path: string, look: () => Promise<Stats>): Promise<Stats> {
  try {
    return await look();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? 'no such file or folder' : plainText(message);
    throw new CliFailure(`${plainText(path)}: ${why}`, { cause: error });
  }
}
