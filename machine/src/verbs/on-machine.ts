// Common part of the verbs that run the API's program locally: the folders, the user, and a
// database for the duration.
import { CHECKOUT } from '../config/folders.ts';
import type { RoleContext } from '../supervisor/role.ts';
import { serviceVariables } from '../supervisor/start-roles.ts';
import { instancePaths, prepareInstance } from '../supervisor/instance.ts';
import { startPostgres } from '../roles/database/postgres.ts';
import { findServiceUser } from '../supervisor/service-user.ts';
import { setUpPackages } from '../setup/setup.ts';
import type { VerbContext } from './context.ts';

/** Runs `work` with the installation's database, also while its service is stopped. */
export async function withApiOnMachine<T>(
  context: VerbContext,
  work: (options: RoleContext) => Promise<T>,
): Promise<T> {
  const { config, environment } = context;
  await setUpPackages(context);
  const paths = instancePaths(config.dataFolder);
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
