// `berth keys create`: mints an operator's API key on the machine itself, whether the service runs or not.
import { createKey } from '../api-command.ts';
import { CHECKOUT, serviceVariables } from '../installation.ts';
import { instancePaths, prepareInstance } from '../instance.ts';
import { startPostgres } from '../postgres.ts';
import { findServiceUser } from '../service-user.ts';
import { setUpPackages } from '../setup/setup.ts';
import type { VerbContext } from './context.ts';

/** Prints the key, alone, on stdout. */
export async function createKeyOnMachine(context: VerbContext, name: string): Promise<number> {
  const { config, progress, environment } = context;
  await setUpPackages(context);
  const paths = instancePaths(config.dataFolder);
  const user = await findServiceUser(environment);
  await prepareInstance(paths, user);
  // Adopts the server of a running service; starts one for this command when there is none.
  const database =
    config.databaseUrl === null ? await startPostgres({ folder: paths.postgres, user, cacheFolder: config.cacheFolder }) : null;
  try {
    const key = await createKey({ checkout: CHECKOUT, config, paths, user, environment: serviceVariables(environment) }, name);
    progress.say(`API key ${key.keyId} (shown this once):`);
    context.print(key.token);
    return 0;
  } finally {
    if (database?.adopted === false) {
      await database.stop();
    }
  }
}
