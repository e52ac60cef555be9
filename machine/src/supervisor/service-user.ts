// The user of the database and the API: never root. Finds that user, or creates it if missing.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { findCaller } from '../config/folders.ts';

const run = promisify(execFile);

/** An unprivileged user with an entry in the system's user database, which initdb requires. */
export interface ServiceUser {
  name: string;
  uid: number;
  gid: number;
}

const SYSTEM_USER = 'berth';

/**
 * The launcher's caller unless root; otherwise the system user `berth`, created if missing. Throws
 * with a message for the operator.
 */
export async function findServiceUser(environment: Readonly<NodeJS.ProcessEnv> = process.env): Promise<ServiceUser> {
  const caller = findCaller(environment);
  if (caller.uid !== 0) return requireUser(String(caller.uid));

  const known = await lookUp(SYSTEM_USER);
  if (known !== null) return known;

  await createSystemUser();
  return requireUser(SYSTEM_USER);
}

async function requireUser(nameOrUid: string): Promise<ServiceUser> {
  const user = await lookUp(nameOrUid);
  if (user === null) throw new Error(`this host has no user ${nameOrUid}`);

  return user;
}

/** Finds a user by name or uid; null if there is none. */
async function lookUp(nameOrUid: string): Promise<ServiceUser | null> {
  try {
    const { stdout } = await run('getent', ['passwd', nameOrUid], { timeout: 10_000 });
    const [name, , uid, gid] = stdout.trim().split(':');
    if (name === undefined || uid === undefined || gid === undefined)
      throw new Error(`getent passwd ${nameOrUid} returned an unknown format: ${stdout}`);

    return { name, uid: Number(uid), gid: Number(gid) };
  } catch (error) {
    // getent's exit code 2: no such entry.
    if ((error as { code?: unknown }).code === 2) return null;

    throw error;
  }
}

async function createSystemUser(): Promise<void> {
  try {
    await run(
      'useradd',
      [
        '--system',
        '--user-group',
        '--no-create-home',
        '--home-dir',
        '/nonexistent',
        '--shell',
        '/usr/sbin/nologin',
        SYSTEM_USER,
      ],
      {
        timeout: 30_000,
      },
    );
  } catch (error) {
    // Exit code 9: another Berth created the same user concurrently.
    if ((error as { code?: unknown }).code !== 9) {
      throw new Error(`the system user ${SYSTEM_USER} could not be created: ${(error as Error).message}`, {
        cause: error,
      });
    }
  }
}
