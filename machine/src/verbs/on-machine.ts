// Common part of the verbs that run the API's program locally: the folders, the user, and a
// database for the duration.
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { nullIf } from '@berth/os/errors.ts';
import { CHECKOUT } from '../config/folders.ts';
import type { RoleContext } from '../supervisor/role.ts';
import { serviceVariables } from '../supervisor/start-roles.ts';
import { instancePaths, prepareInstance } from '../supervisor/instance.ts';
import { startPostgres } from '../roles/database/postgres.ts';
import { findServiceUser } from '../supervisor/service-user.ts';
import { OperatorFailure } from '../output/failure.ts';
import { setUpPackages } from '../setup/setup.ts';
import type { VerbContext } from './context.ts';

/**
 * Runs `work` with the installation's database, also while its service is stopped. Throws an
 * {@link OperatorFailure}, and makes nothing, if the folder has no database and none is named.
 */
export async function withApiOnMachine<T>(
  context: VerbContext,
  work: (options: RoleContext) => Promise<T>,
): Promise<T> {
  const { config, environment } = context;
  const paths = instancePaths(config.dataFolder);
  if (config.databaseUrl === null) await requireDatabase(config.dataFolder, paths.postgres);
  await setUpPackages(context);
  const user = await findServiceUser(environment);
  await prepareInstance(paths, user);
  // Adopts the server of a running service; otherwise starts one for this command.
  const database =
    config.databaseUrl === null
      ? await startPostgres({ folder: paths.postgres, user, cacheFolder: config.cacheFolder })
      : null;
  try {
    return await work({ checkout: CHECKOUT, config, paths, user, environment: serviceVariables(environment) });
  } finally {
    if (database?.adopted === false) await database.stop();
  }
}

async function requireDatabase(dataFolder: string, postgres: string): Promise<void> {
  if ((await lstat(join(postgres, 'data')).catch(nullIf('ENOENT', 'ENOTDIR'))) !== null) return;
  throw new OperatorFailure(`no installation in ${dataFolder}`, {
    remedy:
      'name the folder of the installation with --data-dir, its external database with --database-url, or make one ' +
      'with ./berth up',
  });
}
