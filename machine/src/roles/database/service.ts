// The embedded database as a service.
import { startPostgres } from './postgres.ts';
import type { PostgresOptions } from './postgres.ts';
import type { Service } from '../../supervisor/service.ts';

export function databaseService(options: Omit<PostgresOptions, 'onOutput'>): Service {
  return {
    name: 'database',
    start: async (onOutput) => startPostgres({ ...options, onOutput }),
  };
}
