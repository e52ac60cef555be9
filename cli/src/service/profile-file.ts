// The profile file in the XDG config folder: URL, credential and defaults of each profile. Private
// to the user; accessed only through this module.
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { z } from 'zod';
import { CliFailure, UsageError } from '../output/failure.ts';
import { parseJson } from './json-text.ts';
import { takeLock, type FileLock } from './file-lock.ts';

const MODE = 0o600;
const FOLDER_MODE = 0o700;
export const DEFAULT_PROFILE = 'default';

const session = z.object({
  token: z.string(),
  /** Expiry of the token, ISO 8601. */
  expiresAt: z.iso.datetime(),
  refreshToken: z.string(),
});
export type Session = z.infer<typeof session>;

const profile = z.object({
  url: z.string(),
  orgId: z.string().optional(),
  projectId: z.string().optional(),
  /** Either a given API key, or the session of a sign-in. */
  apiKey: z.string().optional(),
  session: session.optional(),
});
export type Profile = z.infer<typeof profile>;

const profiles = z.object({
  current: z.string().default(DEFAULT_PROFILE),
  profiles: z.record(z.string(), profile).default({}),
});
export type Profiles = z.infer<typeof profiles>;

/** Ignores inherited properties such as `constructor`. */
export function profileIn({ profiles }: Profiles, name: string): Profile | undefined {
  return Object.hasOwn(profiles, name) ? profiles[name] : undefined;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** Throws a UsageError for an invalid name. */
export function checkProfileName(name: string): string {
  if (NAME.test(name)) return name;
  throw new UsageError(
    `invalid profile name '${name}': use up to 64 letters, digits, dots, dashes and underscores, ` +
      'starting with a letter or digit',
  );
}

export class ProfileFile {
  readonly path: string;

  constructor(environment: Readonly<NodeJS.ProcessEnv>) {
    const xdg = environment['XDG_CONFIG_HOME'] ?? '';
    // The XDG specification ignores relative paths.
    this.path = join(isAbsolute(xdg) ? xdg : join(environment['HOME'] || homedir(), '.config'), 'berth', 'config.json');
  }

  /** Resolves with no profiles if the file is missing. */
  async read(): Promise<Profiles> {
    let text: string;
    try {
      const { mode } = await stat(this.path);
      // An editor or a copy may have widened the mode.
      if ((mode & 0o077) !== 0) await chmod(this.path, MODE);
      text = await readFile(this.path, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return profiles.parse({});
      throw new CliFailure(`cannot read ${this.path}: ${(error as Error).message}`, { cause: error });
    }
    const parsed = profiles.safeParse(parseJson(text));
    if (parsed.success) return parsed.data;
    const [issue] = parsed.error.issues;
    throw new CliFailure(
      `${this.path} is not a valid profile file: ${issue?.path.join('.') || 'the file'}: ${issue?.message}`,
      {
        remedy: 'repair it, or remove it and sign in again with berth login',
      },
    );
  }

  /**
   * Changes the file atomically under its lock; skips the write if `edit` returns its argument.
   * `edit` must finish before the lock expires (file-lock.ts).
   */
  async change(edit: (current: Profiles) => Profiles | Promise<Profiles>, signal?: AbortSignal): Promise<Profiles> {
    const lock = await this.#writing(async () => {
      const folder = dirname(this.path);
      await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
      if (((await stat(folder)).mode & 0o077) !== 0) await chmod(folder, FOLDER_MODE);
      return await takeLock(`${this.path}.lock`, signal);
    });
    try {
      const current = await this.read();
      const changed = await edit(current);
      if (changed !== current) await this.#writing(async () => await this.#replace(changed, lock));
      return changed;
    } finally {
      await lock.release();
    }
  }

  async #replace(changed: Profiles, lock: FileLock): Promise<void> {
    const beside = `${this.path}.${randomBytes(6).toString('hex')}`;
    try {
      const file = await open(beside, 'wx', MODE);
      try {
        await file.writeFile(`${JSON.stringify(changed, null, 2)}\n`);
        await file.sync();
      } finally {
        await file.close();
      }
      if (!(await lock.isHeld())) throw new Error('another berth process changed it; try again');
      await rename(beside, this.path);
    } catch (error) {
      await rm(beside, { force: true });
      throw error;
    }
  }

  async #writing<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof CliFailure || (error as Error).name === 'AbortError') throw error;
      throw new CliFailure(`cannot write ${this.path}: ${(error as Error).message}`, { cause: error });
    }
  }
}
