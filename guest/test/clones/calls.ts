// Clone requests of the host daemon to a guest daemon under test, and checks of the result.
import { execFileSync } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sealSecret, type CloneSecret } from '../../src/clones/seal.ts';
import {
  guestCloneKey,
  guestCloneResult,
  type GuestClone,
  type GuestCloneResult,
} from '@berth/protocol/calls/clones.ts';
import { testUid, type TestDaemon } from '../daemon.ts';

/** As {@link GuestClone}, before the credentials are sealed. */
type PlainClone = Omit<GuestClone, 'credentials'> & { credentials: CloneSecret | null };

/** Body of a `POST /clone` without credentials that the daemon accepts. */
export function makeClone(url: string, changes: Partial<GuestClone> = {}): GuestClone {
  return { url, branch: null, credentials: null, timeoutSeconds: 60, maxMib: 1_024, ...changes };
}

/** The same with credentials, sealed for this daemon. */
export async function makeSealedClone(
  daemon: TestDaemon,
  url: string,
  { credentials = null, ...changes }: Partial<PlainClone>,
  secret?: string,
): Promise<GuestClone> {
  if (credentials === null) return makeClone(url, changes);
  const answer = await daemon.call('POST', '/clone/key', undefined, secret);
  if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.text}`);
  const { key } = guestCloneKey.parse(JSON.parse(answer.text));
  return makeClone(url, { ...changes, credentials: sealSecret(key, credentials) });
}

/** Clones and resolves with the result. */
export async function clone(
  daemon: TestDaemon,
  url: string,
  changes: Partial<PlainClone> = {},
): Promise<GuestCloneResult> {
  const answer = await daemon.call('POST', '/clone', await makeSealedClone(daemon, url, changes));
  if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.text}`);
  return guestCloneResult.parse(JSON.parse(answer.text));
}

/** Output of git in the code folder, run as the folder's owner. */
export function gitIn(daemon: TestDaemon, ...args: string[]): string {
  return execFileSync('git', ['-c', `safe.directory=${daemon.codeFolder}`, ...args], {
    cwd: daemon.codeFolder,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' },
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim();
}

interface SeenProcess {
  pid: number;
  /** Arguments and environment, separated by NUL. */
  text: string;
}

/** Processes of the tests' tenant with a word in their arguments, without zombies. */
export async function processesWith(word: string): Promise<SeenProcess[]> {
  const found: SeenProcess[] = [];
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const read = (file: string): Promise<string> => readFile(join('/proc', name, file), 'utf8').catch(() => '');
    const [status, cmdline] = await Promise.all([read('status'), read('cmdline')]);
    if (!status.includes(`\nUid:\t${testUid}\t`) || /^State:\sZ/m.test(status) || !cmdline.includes(word)) continue;
    found.push({ pid: Number(name), text: cmdline + (await read('environ')) });
  }
  return found;
}

/** Files below a folder that contain one of the texts; does not follow links. */
export function filesHolding(folder: string, texts: readonly string[]): string[] {
  const patterns = texts.flatMap((text) => ['-e', text]);
  try {
    return execFileSync('grep', ['-rlaF', ...patterns, folder], { encoding: 'utf8' })
      .trim()
      .split('\n');
  } catch (error) {
    if ((error as { status?: number }).status === 1) return [];
    throw error;
  }
}
