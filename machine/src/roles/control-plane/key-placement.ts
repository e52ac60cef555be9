// Whether a copied disk of this host has both encrypted sandboxes and the key that opens them.
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isInMemory } from '@berth/os/secrets/memory-folder.ts';
import type { Config } from '../../config/config.ts';
import { instancePaths, secretKeyFile } from '../../supervisor/instance.ts';
import { KEY_COMMAND, KEY_FILE } from './secret-key.ts';

interface Warning {
  detail: string;
  remedy: string;
}

/**
 * Null if disks are not encrypted, or the key is on another file system than sandboxes and
 * database. Cannot see that two file systems share a disk, or that one is encrypted.
 */
export async function keyBesideData(
  config: Pick<Config, 'dataFolder' | 'databaseUrl'>,
  environment: Readonly<NodeJS.ProcessEnv>,
): Promise<Warning | null> {
  const { [KEY_FILE]: given, [KEY_COMMAND]: command } = environment;
  if (environment['BERTH_ENCRYPT_DISKS'] !== '1' || command) return null;
  const paths = instancePaths(config.dataFolder);
  const file = given || (await secretKeyFile(paths));
  const key = nearestExisting(file);
  if (await isInMemory(key)) return null;

  const { dev } = await stat(key);
  const folders = [join(paths.root, 'host', 'vms'), ...(config.databaseUrl === null ? [paths.postgres] : [])];
  const devices = await Promise.all(folders.map(async (folder) => (await stat(nearestExisting(folder))).dev));
  const beside = folders.filter((_folder, index) => devices[index] === dev);
  if (beside.length === 0) return null;
  return {
    detail: `the secret key ${file} is on the file system of ${beside.join(' and ')}: a copy opens encrypted sandboxes`,
    remedy:
      `keep the secret key elsewhere with ${KEY_FILE} or ${KEY_COMMAND} (docs/operations.md, "Encryption at rest"), ` +
      'unless this file system is encrypted with a key from elsewhere',
  };
}

/** The path, or the folder in which it will be made. */
function nearestExisting(path: string): string {
  return existsSync(path) ? path : nearestExisting(dirname(path));
}
