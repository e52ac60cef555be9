// The embedded database as a service and as a role.
import type { Service } from '../../supervisor/service.ts';
import { plainRole } from '../../supervisor/role.ts';
import { startPostgres } from './postgres.ts';
import type { PostgresOptions } from './postgres.ts';

export const DATABASE = plainRole('database', ({ config, paths, user }) => [
  databaseService({ folder: paths.postgres, user, cacheFolder: config.cacheFolder }),
]);

export function databaseService(options: Omit<PostgresOptions, 'onOutput'>): Service {
  return {
    name: 'database',
    start: async (onOutput) => startPostgres({ ...options, onOutput }),
  };
}
