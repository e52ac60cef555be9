// Who the database and the API run as: never root. Owns finding that user, and making it on a
// machine that has none.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { findCaller } from '../config/folders.ts';

const run = promisify(execFile);

/** An unprivileged user with an entry in the machine's user database (initdb insists on one). */
export interface ServiceUser {
  name: string;
  uid: number;
  gid: number;
}

/** The system user of a machine whose operator is root. */
const SYSTEM_USER = 'berth';

/**
 * The caller of the launcher when that is no root; otherwise the system user `berth`, which is
 * created when it is missing. Throws with a message for the operator.
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
  if (user === null) throw new Error(`there is no user ${nameOrUid} on this machine`);

  return user;
}

/** Looks a user up by name or uid. Null when there is none. */
async function lookUp(nameOrUid: string): Promise<ServiceUser | null> {
  try {
    const { stdout } = await run('getent', ['passwd', nameOrUid], { timeout: 10_000 });
    const [name, , uid, gid] = stdout.trim().split(':');
    if (name === undefined || uid === undefined || gid === undefined)
      throw new Error(`getent passwd ${nameOrUid} gave an unknown form: ${stdout}`);

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
    // Exit code 9: another Berth made the same user at the same moment.
    if ((error as { code?: unknown }).code !== 9) {
      throw new Error(`the system user ${SYSTEM_USER} could not be created: ${(error as Error).message}`, {
        cause: error,
      });
    }
  }
}
