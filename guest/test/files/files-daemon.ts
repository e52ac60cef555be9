// File calls to a guest daemon under test, as a host makes them, and their outcomes. For tests.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { statFile, type StatOfFile } from '@berth/protocol/calls/files.ts';
import { guestError } from '@berth/protocol/guest.ts';
import { parseListing, type Listing } from '@berth/protocol/listing.ts';
import { testUid, type Answer, type TestDaemon } from '../daemon.ts';

const run = promisify(execFile);
const SOURCES = join(import.meta.dirname, '../../src/files');

/** The text of the helper process for file calls, as the daemon starts it. */
export const FILE_PROGRAM = ['changes.pl', 'append.pl', 'watch.pl', 'program.pl']
  .map((name) => readFileSync(join(SOURCES, name), 'utf8'))
  .join('');

/** Outcome of a call: the bytes of the response, or status and code of a refusal. */
type Outcome = Buffer | `${number} ${string}`;

export class TestFiles {
  readonly #daemon: TestDaemon;

  constructor(daemon: TestDaemon) {
    this.#daemon = daemon;
  }

  /** Absolute path of a name below the code folder. */
  at(name: string): string {
    return name.startsWith('/') ? name : `${this.#daemon.codeFolder}/${name}`;
  }

  async read(name: string): Promise<Outcome> {
    return outcomeOf(await this.#daemon.open('GET', `/file?path=${encodeURIComponent(this.at(name))}`).answer);
  }

  /** Text of a readable file. */
  async text(name: string): Promise<string> {
    const outcome = await this.read(name);
    if (typeof outcome === 'string') throw new Error(`${name}: ${outcome}`);
    return outcome.toString();
  }

  async write(name: string, content: string | Buffer, ifUnchanged?: string, mode?: string): Promise<Outcome> {
    const query = new URLSearchParams({
      path: this.at(name),
      ...(ifUnchanged === undefined ? {} : { ifUnchanged }),
      ...(mode === undefined ? {} : { mode }),
    });
    return outcomeOf(await this.#daemon.open('PUT', `/file?${query.toString()}`, Buffer.from(content)).answer);
  }

  /** Sends a change that has no body: `{}` or the refusal. */
  async change(method: 'DELETE' | 'POST', path: string, query: Record<string, string>): Promise<string> {
    const outcome = outcomeOf(
      await this.#daemon.open(method, `${path}?${new URLSearchParams(query).toString()}`).answer,
    );
    return outcome.toString();
  }

  /** Opens a transfer; a string is the refusal before it. */
  open(name: string, query: Record<string, string> = {}, form: 'stream' | 'part' = 'stream'): Promise<Duplex | string> {
    const search = new URLSearchParams({ path: this.at(name), ...query }).toString();
    const sent = request({
      host: '127.0.0.1',
      port: this.#daemon.port,
      path: `/file/${form}?${search}`,
      headers: { connection: 'Upgrade', upgrade: 'berth-file' },
    });
    return new Promise((resolve, reject) => {
      sent.once('error', reject);
      sent.once('upgrade', (_response, stream, head) => {
        if (head.length > 0) stream.unshift(head);
        resolve(stream);
      });
      sent.once('response', (response) => {
        response.once('data', (text: Buffer) =>
          resolve(`${response.statusCode} ${guestError.parse(JSON.parse(text.toString())).error.code}`),
        );
      });
      sent.end();
    });
  }

  /** The facts of a file as JSON, or the code of a refusal. */
  async stat(name: string): Promise<StatOfFile | string> {
    const outcome = outcomeOf(
      await this.#daemon.open('GET', `/file/stat?path=${encodeURIComponent(this.at(name))}`).answer,
    );
    return typeof outcome === 'string' ? outcome : statFile.response.parse(JSON.parse(outcome.toString()));
  }

  /** The listing, or the code of a refusal. */
  async list(name: string, depth = 1, details = false): Promise<Listing | string> {
    const query = `path=${encodeURIComponent(this.at(name))}&depth=${depth}`;
    const answer = await this.#daemon.open('GET', `/files${details ? '/entries' : ''}?${query}`).answer;
    const outcome = outcomeOf(answer);
    if (typeof outcome === 'string') return outcome;
    const listing = parseListing(outcome, { root: this.at(name), depth });
    if (listing === null) throw new Error(`no listing: ${outcome.toString('latin1').slice(0, 200)}`);
    return listing;
  }

  /** Sorted entries by folder, as UTF-8, folder names with a trailing slash. */
  async names(name: string, depth = 1): Promise<Record<string, string[]>> {
    const listing = await this.list(name, depth);
    if (typeof listing === 'string') throw new Error(`${name}: ${listing}`);
    const utf8 = (text: string): string => Buffer.from(text, 'latin1').toString('utf8');
    return Object.fromEntries(
      listing.folders.map(({ path, entries }) => [
        utf8(path),
        entries.map((entry) => utf8(entry.name) + (entry.kind === 'directory' ? '/' : '')).sort(),
      ]),
    );
  }
}

/** Processes of the helper, itself included. */
export async function helpersOf(daemon: TestDaemon): Promise<number[]> {
  const children = async (pid: number): Promise<number[]> =>
    (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => ''))
      .split(' ')
      .filter(Boolean)
      .map(Number);
  const found: number[] = [];
  for (const pid of await children(daemon.pid)) {
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (command.includes('files.sock')) found.push(pid, ...(await children(pid)));
  }
  return found;
}

/** A file system of 1 MiB that the tenant owns; needs root. */
export async function smallDisk(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-small-disk-'));
  await run('mount', ['-t', 'tmpfs', '-o', `size=1m,uid=${testUid},mode=0755`, 'none', folder]);
  t.after(async () => {
    await run('umount', [folder]);
    await rm(folder, { recursive: true });
  });
  return folder;
}

/** An open transfer; throws its refusal. */
export function opened(outcome: Duplex | string): Duplex {
  if (typeof outcome === 'string') throw new Error(`refused: ${outcome}`);
  outcome.on('error', () => undefined);
  return outcome;
}

export async function textOf(stream: Duplex): Promise<string> {
  return Buffer.concat((await stream.toArray()) as Buffer[]).toString();
}

export function outcomeOf({ status, bytes, text }: Answer): Outcome {
  if (status === 200) return bytes;
  return `${status} ${guestError.parse(JSON.parse(text)).error.code}`;
}

/** Programs that wait for a lock of the file. */
export async function waitersOf(path: string): Promise<number> {
  const { ino } = await stat(path);
  const lines = (await readFile('/proc/locks', 'utf8')).split('\n');
  return lines.filter((line) => line.includes('-> FLOCK') && line.includes(`:${ino} `)).length;
}
