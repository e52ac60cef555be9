// The source of the secret key: the data folder, or the operator's file or command. A key from
// elsewhere is never on the disk of the data folder: the API reads a copy in memory.
import { createHash } from 'node:crypto';
import { chmod, chown, lstat, mkdir, readFile, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { readIfPresent, writeDurably } from '@berth/os/durable-file.ts';
import { messageOf, nullIf } from '@berth/os/errors.ts';
import { isInMemory, isWritable, MEMORY_FOLDERS, writableMemoryFolder } from '@berth/os/secrets/memory-folder.ts';
import { runSecretCommand } from '@berth/os/secrets/secret-command.ts';
import { secretLines } from '@berth/protocol/secret-lines.ts';
import { OperatorFailure } from '../../output/failure.ts';
import { prepareSecret, replaceLink, secretKeyFile } from '../../supervisor/instance.ts';
import type { InstancePaths } from '../../supervisor/instance.ts';
import type { ServiceUser } from '../../supervisor/service-user.ts';

export const KEY_FILE = 'BERTH_SECRET_KEY_FILE';
export const KEY_COMMAND = 'BERTH_SECRET_KEY_COMMAND';
const STORE = 'BERTH_SECRET_KEY_STORE_COMMAND';

type Environment = Readonly<NodeJS.ProcessEnv>;

interface KeySource {
  /** Lines of the key. */
  load(): Promise<string>;
  /** Null if a rotation can store keys; otherwise the reason. */
  whyFixed(): Promise<string | null>;
  /** Resolves when a later {@link load} returns the text. */
  store(text: string): Promise<void>;
}

/** Makes the key of the data folder, or loads the one from elsewhere. */
export async function prepareSecretKey(
  paths: InstancePaths,
  user: ServiceUser,
  environment: Environment,
): Promise<void> {
  const source = await findSource(paths, environment);
  if (source === null) await prepareSecret(paths, paths.secretKey, user);
  else await keepInMemory(paths, user, await source.load());
}

/** Like {@link prepareSecretKey}; keeps a key that the API can read. */
export async function requireSecretKey(
  paths: InstancePaths,
  user: ServiceUser,
  environment: Environment,
): Promise<void> {
  if ((await readIfPresent(await secretKeyFile(paths))) === null) await prepareSecretKey(paths, user, environment);
}

/**
 * Before a rotation: loads the source again, which a killed rotation may have changed. Throws an
 * {@link OperatorFailure} if Berth cannot store keys there.
 */
export async function requireRotatableKey(
  paths: InstancePaths,
  user: ServiceUser,
  environment: Environment,
): Promise<void> {
  const source = await findSource(paths, environment);
  if (source === null) return;
  const why = await source.whyFixed();
  if (why !== null) {
    throw new OperatorFailure(`cannot change the secret key: ${why}`, {
      remedy:
        'change it where it comes from (a new line above the current one) and restart Berth; ' +
        'docs/operations.md, "Rotation of secrets", has the commands',
    });
  }
  const text = await source.load();
  const [current] = secretLines(await readFile(await secretKeyFile(paths), 'utf8'));
  if (!secretLines(text).includes(current)) {
    throw new OperatorFailure('cannot change the secret key: its source lacks the current key of the service', {
      remedy: `check ${KEY_FILE} or ${KEY_COMMAND}; another key goes above the current one, then restart Berth`,
    });
  }
  await keepInMemory(paths, user, text);
}

/** Stores the lines at their source first: after a restart the API reads them from there. */
export async function storeSecretKey(
  paths: InstancePaths,
  user: ServiceUser,
  environment: Environment,
  text: string,
): Promise<void> {
  const source = await findSource(paths, environment);
  await source?.store(text);
  if (source === null) await writeDurably(paths.secretKey, text, 0o640, { uid: 0, gid: user.gid });
  else await keepInMemory(paths, user, text);
}

/** Null: the data folder. Throws if the settings contradict each other, or what the folder has. */
async function findSource(paths: InstancePaths, environment: Environment): Promise<KeySource | null> {
  const { [KEY_FILE]: file = '', [KEY_COMMAND]: command = '', [STORE]: store = '' } = environment;
  if (file !== '' && command !== '')
    throw new OperatorFailure(`cannot use ${KEY_FILE} and ${KEY_COMMAND} together`, { remedy: 'unset one of them' });
  if (store !== '' && command === '') {
    throw new OperatorFailure(`cannot use ${STORE} without ${KEY_COMMAND}`, {
      remedy: `set ${KEY_COMMAND}, or unset ${STORE}`,
    });
  }
  await requireOnePlace(paths, environment);
  if (file !== '') return fileSource(file);
  return command === '' ? null : commandSource(command, store, environment);
}

/** A key in the data folder beside one from elsewhere is a copy on the disk, or another key. */
async function requireOnePlace(paths: InstancePaths, environment: Environment): Promise<void> {
  const isElsewhere = Boolean(environment[KEY_FILE] || environment[KEY_COMMAND]);
  if (!isElsewhere && (await lstat(paths.loadedKey).catch(nullIf('ENOENT'))) !== null) {
    throw new OperatorFailure(
      `the secret key of ${paths.root} comes from elsewhere, and no variable names its source`,
      {
        remedy:
          `set ${KEY_FILE} or ${KEY_COMMAND} as at the last start (under systemd: /etc/berth/berth.env). ` +
          `To keep the key in the data folder, write it to ${paths.secretKey} and remove ${paths.loadedKey}`,
      },
    );
  }
  if (!isElsewhere) return;
  for (const left of [paths.secretKey, join(paths.secrets, basename(paths.secretKey))]) {
    if ((await lstat(left).catch(nullIf('ENOENT')))?.isFile() !== true) continue;
    throw new OperatorFailure(
      `cannot use ${environment[KEY_FILE] ? KEY_FILE : KEY_COMMAND}: ${left} has a secret key too`,
      {
        remedy: `copy its lines to where the variable reads the key, then remove it: shred -u ${left}`,
      },
    );
  }
}

function fileSource(path: string): KeySource {
  return {
    load: () =>
      readFile(path, 'utf8').catch((error: unknown) => {
        throw new OperatorFailure(`cannot use the file of ${KEY_FILE}: ${messageOf(error)}`, {
          remedy: 'make it before the start: openssl rand -base64 32 prints a new key',
          cause: error,
        });
      }),
    whyFixed: async () => {
      if (await isInMemory(path)) return `${path} is in memory, and a changed key would be lost with the next boot`;
      return (await isWritable(dirname(await realpath(path)))) ? null : `the folder of ${path} is not writable`;
    },
    store: async (text) => {
      const file = await realpath(path);
      const { mode, uid, gid } = await stat(file);
      await writeDurably(file, text, mode & 0o777, { uid, gid });
    },
  };
}

function commandSource(command: string, store: string, environment: Environment): KeySource {
  const run = (variable: string, line: string, input: { input?: string } = {}): string => {
    try {
      return runSecretCommand({ variable, line, environment, ...input });
    } catch (error) {
      throw new OperatorFailure(messageOf(error), { cause: error });
    }
  };
  const load = async (): Promise<string> => run(KEY_COMMAND, command);
  return {
    load,
    whyFixed: async () => (store === '' ? `it comes from ${KEY_COMMAND}, and ${STORE} is not set` : null),
    store: async (text) => {
      run(STORE, store, { input: text });
      // Nothing may be sealed with a key that the next start cannot load.
      if (secretLines(await load()).join() !== secretLines(text).join())
        throw new OperatorFailure(`${KEY_COMMAND} does not print the keys that ${STORE} stored: nothing uses them yet`);
    },
  };
}

/** Writes the API's copy. The folder around it is closed to the API's user, who gets a bind. */
async function keepInMemory(paths: InstancePaths, user: ServiceUser, text: string): Promise<void> {
  requireKeys(text);
  const parent = await writableMemoryFolder();
  if (parent === null) {
    throw new OperatorFailure(`cannot hold the secret key: none of ${MEMORY_FOLDERS.join(', ')} is a writable tmpfs`, {
      remedy: 'mount one on /dev/shm',
    });
  }
  const closed = join(parent, `berth-secret-key-${createHash('sha256').update(paths.root).digest('hex').slice(0, 16)}`);
  await mkdir(closed, { mode: 0o700 }).catch(nullIf('EEXIST'));
  // Every user may make folders in /dev/shm.
  const found = await lstat(closed);
  if (!(found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o077) === 0))
    throw new OperatorFailure(`cannot hold the secret key: ${closed} belongs to another user`, { remedy: 'remove it' });
  const folder = join(closed, 'api');
  await mkdir(folder, { recursive: true });
  await chown(folder, 0, user.gid);
  await chmod(folder, 0o750);
  await writeDurably(join(folder, basename(paths.secretKey)), text, 0o640, { uid: 0, gid: user.gid });
  await replaceLink(folder, paths.loadedKey);
}

/** Refuses text without a key, such as a message of the command. */
function requireKeys(text: string): void {
  let why: string | null = null;
  try {
    if (secretLines(text).some((line) => !/^[\w+/-]{43,}={0,2}$/.test(line)))
      why = 'a line is not base64 of at least 32 bytes';
  } catch (error) {
    why = messageOf(error);
  }
  if (why !== null) {
    throw new OperatorFailure(`cannot use the secret key of ${KEY_FILE} or ${KEY_COMMAND}: ${why}`, {
      remedy: 'a line must be a key, as openssl rand -base64 32 prints it, the current one first',
    });
  }
}
