// Scans for secrets in the log, in every row of every table, and in command lines and environments
// of this process and its children. `startApi` records every token that passes through `call` and
// scans on close.
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import pg from 'pg';
import { pino, type DestinationStream, type Level } from 'pino';
import { nullIf } from '@berth/os/errors.ts';

/** Shorter texts occur by chance. */
const MIN_CHARACTERS = 12;

export class SecretsScan {
  /** Name of each secret, keyed by the secret. */
  readonly #secrets = new Map<string, string>();
  readonly #lines: string[] = [];

  /** Destination of the log: keeps everything, and shows the level on stderr. */
  into(shown: Level | undefined): DestinationStream {
    const kept = { level: 'trace' as const, stream: { write: (line: string) => void this.#lines.push(line) } };
    return pino.multistream(shown === undefined ? [kept] : [kept, { level: shown, stream: pino.destination(2) }]);
  }

  /** Records a secret and returns it. */
  note(secret: string, what: string): string {
    assert.ok(secret.length >= MIN_CHARACTERS, `${what} is too short to be looked for`);
    this.#secrets.set(secret, what);
    return secret;
  }

  /** Returns the whole log. */
  logged(): string {
    return this.#lines.join('');
  }

  /**
   * Throws if a recorded secret is in a forbidden place, plain or as hex, base64 or URL-encoded.
   */
  async check(databaseUrl: string): Promise<void> {
    if (this.#secrets.size === 0) return;
    const found = new Set<string>();
    const find = (text: string, where: string): void => {
      for (const what of this.#find(text)) found.add(`${what} is in ${where}`);
    };
    find(this.logged(), 'the log');
    for (const { where, text } of await readProcesses(process.pid)) find(text, where);
    await readTables(databaseUrl, (table, text) => find(text, `the table ${table}`));
    assert.deepEqual([...found], [], 'secrets where none may be');
  }

  /** Returns the secrets in the text, in one pass. */
  #find(whole: string): Set<string> {
    const text = withoutEscapes(whole);
    const beginnings = new Map<string, { form: string; what: string }[]>();
    for (const [secret, what] of this.#secrets) {
      for (const form of formsOf(secret)) {
        const beginning = form.slice(0, MIN_CHARACTERS);
        beginnings.set(beginning, [...(beginnings.get(beginning) ?? []), { form, what }]);
      }
    }
    const found = new Set<string>();
    for (let at = 0; at + MIN_CHARACTERS <= text.length; at += 1) {
      for (const { form, what } of beginnings.get(text.slice(at, at + MIN_CHARACTERS)) ?? [])
        if (text.startsWith(form, at)) found.add(what);
    }
    return found;
  }
}

function formsOf(secret: string): Set<string> {
  const bytes = Buffer.from(secret);
  // The end of base64 depends on the following bytes.
  const base64 = bytes.subarray(0, bytes.length - (bytes.length % 3)).toString('base64');
  return new Set([withoutEscapes(secret), encodeURIComponent(secret), bytes.toString('hex'), base64]);
}

/** JSON and rows escape quotes and backslashes, possibly twice: compare text without any. */
function withoutEscapes(text: string): string {
  return text.replaceAll(/["\\]+/g, '');
}

async function readTables(databaseUrl: string, each: (table: string, text: string) => void): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows: tables } = await client.query<{ name: string }>(
      `select format('%I.%I', schemaname, tablename) as name
      from pg_tables
      where schemaname not in ('pg_catalog', 'information_schema')`,
    );
    assert.ok(tables.some(({ name }) => name === 'public.api_key'));
    for (const { name } of tables) {
      const { rows } = await client.query<[string]>({ text: `select t::text from ${name} t`, rowMode: 'array' });
      each(name, rows.map(([text]) => text).join('\n'));
    }
  } finally {
    await client.end();
  }
}

/** Command line and environment of a process and its descendants. */
async function readProcesses(pid: number): Promise<{ where: string; text: string }[]> {
  // The process may have exited.
  const read = async (path: string): Promise<string> =>
    (await readFile(`/proc/${pid}/${path}`, 'utf8').catch(nullIf('ENOENT', 'ESRCH'))) ?? '';
  const own = await Promise.all(
    ['cmdline', 'environ'].map(async (file) => ({
      where: `the ${file} of the process ${pid}`,
      text: await read(file),
    })),
  );
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  const children = await Promise.all(threads.map(async (thread) => (await read(`task/${thread}/children`)).split(' ')));
  const below = children.flat().filter((child) => /^\d+/.test(child));
  return [...own, ...(await Promise.all(below.map((child) => readProcesses(Number(child))))).flat()];
}
