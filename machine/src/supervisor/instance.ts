// The data folder of one installation: its layout, the supervisor's exclusive lock, and the record
// of the running supervisor.
import { randomBytes } from 'node:crypto';
import { chmod, chown, link, lstat, mkdir, readFile, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { tryLock } from '@berth/os/file-lock.ts';
import type { HeldLock } from '@berth/os/file-lock.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { writeDurably, readIfPresent } from '@berth/os/durable-file.ts';
import { endProcess, isSame } from '@berth/os/process-identity.ts';
import { hasCode, nullIf } from '@berth/os/errors.ts';
import type { ServiceUser } from './service-user.ts';

const LEFTOVER_GRACE_MS = 15_000;

/** Paths inside a data folder. */
export interface InstancePaths {
  root: string;
  /** Mode 0700, owned by root. */
  secrets: string;
  /**
   * Folder of the secrets that the API reads again while it runs, exposed to it whole: a rotation
   * makes new files.
   */
  apiSecrets: string;
  hostToken: string;
  /**
   * The API derives from it the keys that sign sign-ins and links and encrypt stored credentials.
   * Absent if the key comes from elsewhere.
   */
  secretKey: string;
  /** Link to the folder in memory with a `secret-key` that comes from elsewhere. */
  loadedKey: string;
  /** Folder for mail while there is no mail server. */
  outbox: string;
  /**
   * Folder of the host daemon's socket, exposed to the API whole: a new daemon makes a new socket.
   */
  hostSocketFolder: string;
  hostSocket: string;
  /** Plan catalogue for the API: a copy made when the supervisor starts. */
  plans: string;
  postgres: string;
  log: string;
  lock: string;
  record: string;
  /** Present: the next stop puts the sandboxes to sleep. */
  sleepAtStop: string;
}

/**
 * The supervisor of this data folder and its services. Kept after its exit, so that the next one
 * can find leftovers.
 */
export interface InstanceRecord {
  supervisor: ProcessIdentity;
  url: string;
  /** Public URL; absent in records of earlier versions. */
  publicUrl?: string | undefined;
  services: Record<string, ProcessIdentity>;
}

const processSchema = z.object({ pid: z.int(), startTicks: z.string(), bootId: z.string() });
const recordSchema = z.object({
  supervisor: processSchema,
  url: z.string(),
  publicUrl: z.string().optional(),
  services: z.record(z.string(), processSchema),
});

export function instancePaths(dataFolder: string): InstancePaths {
  const run = join(dataFolder, 'run');
  const secrets = join(dataFolder, 'secrets');
  return {
    root: dataFolder,
    secrets,
    apiSecrets: join(secrets, 'api'),
    hostToken: join(secrets, 'api', 'host-token'),
    secretKey: join(secrets, 'api', 'secret-key'),
    loadedKey: join(secrets, 'loaded-key'),
    outbox: join(dataFolder, 'outbox'),
    hostSocketFolder: join(run, 'host'),
    hostSocket: join(run, 'host', 'host.sock'),
    plans: join(run, 'plans.json'),
    postgres: join(dataFolder, 'postgres'),
    log: join(dataFolder, 'log'),
    lock: join(run, 'supervisor.lock'),
    record: join(run, 'supervisor.json'),
    sleepAtStop: join(run, 'sleep-at-stop'),
  };
}

/** Makes missing folders, and the token shared by API and host daemon. */
export async function prepareInstance(paths: InstancePaths, user: ServiceUser): Promise<void> {
  await mkdir(paths.root, { recursive: true, mode: 0o755 });
  for (const folder of [paths.secrets, paths.log, paths.postgres]) {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await chmod(folder, 0o700);
  }
  await mkdir(paths.hostSocketFolder, { recursive: true, mode: 0o755 });
  await mkdir(paths.apiSecrets, { recursive: true });
  await prepareSecret(paths, paths.hostToken, user);
  // The API reads them as its own user, through a bind; the folder around stays closed.
  await chown(paths.apiSecrets, 0, user.gid);
  await chmod(paths.apiSecrets, 0o750);
  await mkdir(paths.outbox, { recursive: true, mode: 0o700 });
  await chown(paths.outbox, user.uid, user.gid);
}

/** Makes a missing secret of the data folder, readable for the API. */
export async function prepareSecret(paths: InstancePaths, secret: string, user: ServiceUser): Promise<void> {
  await adopt(join(paths.secrets, basename(secret)), secret);
  await ensureToken(secret);
  await chown(secret, 0, user.gid);
  await chmod(secret, 0o640);
}

/** The file from which the API reads the secret key. */
export async function secretKeyFile(paths: InstancePaths): Promise<string> {
  const folder = await readlink(paths.loadedKey).catch(nullIf('ENOENT'));
  return folder === null ? paths.secretKey : join(folder, basename(paths.secretKey));
}

/** Null if another supervisor holds this data folder. */
export async function lockInstance(paths: InstancePaths): Promise<HeldLock | null> {
  await mkdir(join(paths.root, 'run'), { recursive: true, mode: 0o755 });
  return tryLock(paths.lock);
}

export async function isSupervised(paths: InstancePaths): Promise<boolean> {
  try {
    const lock = await tryLock(paths.lock);
    await lock?.release();
    return lock === null;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;

    throw error;
  }
}

/** Callers must not call it concurrently. */
export async function writeInstanceRecord(paths: InstancePaths, record: InstanceRecord): Promise<void> {
  await writeDurably(paths.record, `${JSON.stringify(record)}\n`, 0o644);
}

/** Null if no supervisor ever ran here. */
export async function readInstanceRecord(paths: InstancePaths): Promise<InstanceRecord | null> {
  const text = await readIfPresent(paths.record);
  return text === null ? null : recordSchema.parse(JSON.parse(text));
}

/**
 * Ends the services of a supervisor that is gone; resolves with their number. If it was killed, the
 * kernel has signalled them; this ends the rest.
 */
export async function endRecordedServices(record: InstanceRecord | null): Promise<number> {
  let ended = 0;
  for (const process of Object.values(record?.services ?? {})) {
    if (await isSame(process)) {
      await endProcess(process, { graceMs: LEFTOVER_GRACE_MS });
      ended += 1;
    }
  }
  return ended;
}

/**
 * Moves a secret of an earlier version, and leaves a link: that version would make a new one. No-op
 * once it is moved.
 */
async function adopt(before: string, secret: string): Promise<void> {
  const found = await lstat(before).catch(nullIf('ENOENT'));
  if (found?.isSymbolicLink() === true) return;
  // A link never overwrites, also when another start does the same.
  if (found !== null) await link(before, secret).catch(nullIf('EEXIST'));
  const moved = await readIfPresent(secret);
  if (found !== null && (await readFile(before, 'utf8')) !== moved)
    throw new Error(`${before} and ${secret} differ: keep the right one as ${secret} and remove the other`);
  await replaceLink(join(basename(dirname(secret)), basename(secret)), before);
}

export async function replaceLink(target: string, path: string): Promise<void> {
  const beside = `${path}.${randomBytes(6).toString('hex')}.draft`;
  await symlink(target, beside);
  await rename(beside, path);
}

async function ensureToken(path: string): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString('hex')}.draft`;
  await writeFile(draft, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600, flush: true });
  try {
    await link(draft, path);
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
  } finally {
    await rm(draft, { force: true });
  }
}
