// The control plane as a role: the API, with the operator's plans and secrets, and its secret key.
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { requireFreePort } from '../../config/ports.ts';
import { OperatorFailure } from '../../output/failure.ts';
import type { ServiceUser } from '../../supervisor/service-user.ts';
import type { Role } from '../../supervisor/role.ts';
import { copyOperatorSecrets } from './operator-secrets.ts';
import { copyPlansFile } from './plans-file.ts';
import { prepareSecretKey } from './secret-key.ts';
import { API_PROGRAM, apiService } from './service.ts';

export const CONTROL_PLANE: Role = {
  name: 'control-plane',
  check: async ({ checkout, config, user }) => {
    await requireFreePort(config.listen, config.port);
    await requireReadable(checkout, user);
  },
  prepare: async ({ config, paths, user }, environment) => {
    await copyPlansFile(config.plansFile, paths, user);
    await copyOperatorSecrets(environment, paths, user);
    await prepareSecretKey(paths, user, environment);
  },
  services: (context) => [apiService(context)],
};

/**
 * The unprivileged user must be able to read the program; a clone made under umask 077 is private
 * to its owner.
 */
async function requireReadable(checkout: string, user: ServiceUser): Promise<void> {
  for (const name of [API_PROGRAM, 'package.json', 'node_modules/.bin/node']) {
    const path = join(checkout, name);
    if (!existsSync(path)) throw new OperatorFailure(`${path} is missing: this checkout of Berth is incomplete`);

    const { mode, uid, gid } = await stat(path);
    const readable = (uid === user.uid ? mode & 0o400 : gid === user.gid ? mode & 0o040 : mode & 0o004) !== 0;
    if (!readable) {
      throw new OperatorFailure(`the API's user ${user.name} cannot read ${path}`, {
        remedy: `chmod -R go+rX ${checkout} (the folders above it may stay closed)`,
      });
    }
  }
}
