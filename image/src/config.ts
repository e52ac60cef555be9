// Environment of the image build. The only file of this workspace that reads it.
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

/** `BERTH_CACHE_DIR`, else the system's cache folder for root, the user's for others. */
export function defaultCacheFolder(env: NodeJS.ProcessEnv): string {
  const given = env['BERTH_CACHE_DIR'];
  if (given !== undefined && given !== '') return resolve(given);
  if (process.getuid?.() === 0) return '/var/cache/berth';
  return join(env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'berth');
}
