// The daemon's part of the data folder: its layout, its exclusive lock, the ids that live as long
// as the folder, and the token.
import { link, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { secretLines } from '@berth/protocol/secret-lines.ts';
import { tryLock } from '@berth/os/file-lock.ts';
import { readIfPresent } from '@berth/os/durable-file.ts';

const LETTERS = 'abcdefghijklmnopqrstuvwxyz234567';
const TOKEN_MIN_CHARACTERS = 32;

export interface DataFolder {
  vms: string;
  /** Same file system as `vms`: VMs move between the two. */
  pool: string;
  fences: string;
  /** Identifies this installation among several on one host. */
  instanceId: string;
  /** Identifies this host to the control plane. */
  hostId: string;
  /** Releases the lock for the next daemon. */
  unlock(): Promise<void>;
}

/**
 * Makes missing folders and takes the lock; the kernel releases it however this process ends.
 * Throws if another daemon holds it.
 */
export async function openDataFolder(root: string): Promise<DataFolder> {
  const host = join(root, 'host');
  await mkdir(host, { recursive: true, mode: 0o700 });
  const lockPath = join(host, 'lock');
  const lock = await tryLock(lockPath);
  if (lock === null) throw new Error(`another host daemon uses this data folder and holds ${lockPath}`);

  try {
    return {
      vms: join(host, 'vms'),
      pool: join(host, 'pool'),
      fences: join(host, 'fences'),
      instanceId: await readOrCreateId(join(root, 'instance-id'), /^[a-z2-7]{8}$/, () => randomLetters(8)),
      hostId: await readOrCreateId(join(host, 'host-id'), /^hst_[a-z2-7]{24}$/, () => `hst_${randomLetters(24)}`),
      unlock: () => lock.release(),
    };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/**
 * The control plane's bearer tokens, the current one first. Throws if the file is missing, has a
 * short token, or is readable by other users.
 */
export async function readTokens(path: string): Promise<readonly string[]> {
  const { mode } = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw new Error(`--token-file (BERTH_HOST_TOKEN_FILE): ${error.message}`, { cause: error });
  });
  if ((mode & 0o007) !== 0)
    throw new Error(`--token-file: ${path} is readable by every user; chmod it to 0600 or 0640`);

  const text = await readFile(path, 'utf8');
  try {
    const tokens = secretLines(text);
    if (tokens.every((token) => token.length >= TOKEN_MIN_CHARACTERS && !/\s/.test(token))) return tokens;
  } catch (error) {
    throw new Error(`--token-file: ${path}: ${(error as Error).message}`, { cause: error });
  }
  throw new Error(
    `--token-file: ${path} must contain words of at least ${TOKEN_MIN_CHARACTERS} characters, one a line`,
  );
}

/** Base32 letters and digits: 5 random bits each. */
export function randomLetters(count: number): string {
  return Array.from(randomBytes(count), (byte) => LETTERS.charAt(byte & 31)).join('');
}

/** Reads the id of an earlier start, or makes one. Concurrent starts agree: the first link wins. */
async function readOrCreateId(path: string, form: RegExp, make: () => string): Promise<string> {
  const kept = (await readIfPresent(path))?.trim();
  if (kept !== undefined) {
    if (!form.test(kept))
      throw new Error(`${path} holds '${kept.slice(0, 40)}', which is not an id of the form ${form.source}`);

    return kept;
  }
  const beside = `${path}.${randomLetters(8)}.tmp`;
  await writeFile(beside, `${make()}\n`, { mode: 0o644, flush: true });
  try {
    await link(beside, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  } finally {
    await rm(beside, { force: true });
  }
  return readOrCreateId(path, form, make);
}
