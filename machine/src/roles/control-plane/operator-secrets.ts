// The operator's secret files, a secret each, named by variables: copied for the confined API,
// which cannot read the originals.
import { chown, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writeDurably } from '@berth/os/durable-file.ts';
import { messageOf } from '@berth/os/errors.ts';
import type { Confined } from '../../supervisor/confinement.ts';
import { OperatorFailure } from '../../output/failure.ts';
import type { InstancePaths } from '../../supervisor/instance.ts';
import type { ServiceUser } from '../../supervisor/service-user.ts';

/** Variable, and the file name of its copy. */
const FILES = {
  BERTH_SMTP_URL_FILE: 'smtp-url',
  BERTH_OIDC_CLIENT_SECRET_FILE: 'oidc-client-secret',
  BERTH_STRIPE_SECRET_KEY_FILE: 'stripe-secret-key',
  BERTH_STRIPE_WEBHOOK_SECRET_FILE: 'stripe-webhook-secret',
} as const;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Copies the files for the supervisor's lifetime: a restarted API reads the same content. Removes
 * copies of files no longer named. Throws an {@link OperatorFailure} that names the variable and
 * the file.
 */
export async function copyOperatorSecrets(
  environment: Environment,
  paths: InstancePaths,
  user: ServiceUser,
): Promise<void> {
  for (const [variable, name] of Object.entries(FILES)) {
    const file = environment[variable];
    const copy = join(paths.secrets, name);
    if (file === undefined || file === '') {
      await rm(copy, { force: true });
      continue;
    }
    await writeDurably(copy, await read(variable, file), 0o640);
    await chown(copy, 0, user.gid);
  }
}

/** Adds the copies to the serving API's confinement. */
export function withOperatorSecrets(environment: Environment, paths: InstancePaths, api: Confined): Confined {
  const named = Object.entries(FILES).filter(([variable]) => (environment[variable] ?? '') !== '');
  return {
    ...api,
    binds: [...api.binds, ...named.map(([, name]) => ({ from: join(paths.secrets, name), to: `/${name}` }))],
    environment: { ...api.environment, ...Object.fromEntries(named.map(([variable, name]) => [variable, `/${name}`])) },
  };
}

async function read(variable: string, file: string): Promise<string> {
  const remedy = `${variable} must name a file that contains only the secret`;
  let content: string;
  try {
    content = await readFile(file, 'utf8');
  } catch (error) {
    throw new OperatorFailure(`cannot use the file of ${variable}: ${messageOf(error)}`, {
      remedy,
      cause: error,
    });
  }
  if (content.trim() === '')
    throw new OperatorFailure(`cannot use the file of ${variable}: ${file} is empty`, { remedy });
  return content;
}
