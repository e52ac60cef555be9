// Default locations of the data folder and the cache folder. Receives the environment as an
// argument.
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Folder of the program's files. */
export const CHECKOUT = join(import.meta.dirname, '../../..');

type Environment = Readonly<NodeJS.ProcessEnv>;

/**
 * The launcher's caller, with uid and home: the user who ran it through sudo (the launcher passes
 * both on), or this process's own user. Everything of an installation belongs to that caller.
 */
export function findCaller(environment: Environment): { uid: number; home: string } {
  const uid = Number(environment['BERTH_CALLER_UID'] ?? Number.NaN);
  const home = environment['BERTH_CALLER_HOME'];
  if (Number.isSafeInteger(uid) && home !== undefined && home.startsWith('/')) return { uid, home };

  return { uid: process.getuid?.() ?? 0, home: homedir() };
}

/**
 * Default data folder: `BERTH_DATA_DIR`, /var/lib/berth for root, else the caller's state folder.
 */
export function defaultDataFolder(environment: Environment): string {
  return environment['BERTH_DATA_DIR'] || pick(environment, '/var/lib/berth', 'XDG_STATE_HOME', '.local/state');
}

/**
 * Cache folder: `BERTH_CACHE_DIR`, /var/cache/berth for root, else the caller's cache folder. All
 * its content can be made again.
 */
export function defaultCacheFolder(environment: Environment): string {
  return environment['BERTH_CACHE_DIR'] || pick(environment, '/var/cache/berth', 'XDG_CACHE_HOME', '.cache');
}

function pick(environment: Environment, rootFolder: string, variable: string, belowHome: string): string {
  const caller = findCaller(environment);
  return caller.uid === 0 ? rootFolder : join(environment[variable] || join(caller.home, belowHome), 'berth');
}
