// Checks of the database's role. Read-only.
import { join } from 'node:path';
import type { Config } from '../../config/config.ts';
import { fault, ok } from '../../doctor/check.ts';
import type { Check, Finding } from '../../doctor/check.ts';
import { instancePaths } from '../../supervisor/instance.ts';
import { ensurePostgresBinaries } from './binaries.ts';

export const databaseCheck = (config: Config): Check => ({ subject: 'database', run: () => checkDatabase(config) });

async function checkDatabase(config: Config): Promise<Finding[]> {
  if (config.databaseUrl !== null) return [ok('database', `your own server, ${new URL(config.databaseUrl).host}`)];

  const binaries = await ensurePostgresBinaries(config.cacheFolder);
  const longest = join(instancePaths(config.dataFolder).postgres, 'socket', '.s.PGSQL.5432');
  return [
    Buffer.byteLength(longest) <= 107
      ? ok('database', `embedded, ${binaries}`)
      : fault('database', `${longest} is too long for a unix socket`, 'choose a shorter --data-dir'),
  ];
}
