// Checks of the control plane's role. Read-only.
import type { Config } from '../../config/config.ts';
import { requireFreePort } from '../../config/ports.ts';
import { fault, ok, warn } from '../../doctor/check.ts';
import type { Check, Finding } from '../../doctor/check.ts';
import { OperatorFailure } from '../../output/failure.ts';
import { instancePaths, isSupervised, readInstanceRecord } from '../../supervisor/instance.ts';
import { keyBesideData } from './key-placement.ts';
import { apiUrl } from './service.ts';

export const portCheck = (config: Config): Check => ({ subject: 'port', run: () => checkPort(config) });

/** No finding while BERTH_ENCRYPT_DISKS is not set. */
export const encryptionCheck = (config: Config, environment: Readonly<NodeJS.ProcessEnv>): Check => ({
  subject: 'encryption',
  run: async () => {
    if (environment['BERTH_ENCRYPT_DISKS'] !== '1') return [];
    const beside = await keyBesideData(config, environment);
    return [
      beside === null
        ? ok('encryption', 'the secret key is on another file system than sandboxes and database')
        : warn('encryption', beside.detail, beside.remedy),
    ];
  },
});

async function checkPort(config: Config): Promise<Finding[]> {
  const paths = instancePaths(config.dataFolder);
  const own = (await isSupervised(paths)) ? await readInstanceRecord(paths) : null;
  if (own?.url === apiUrl(config))
    return [ok('port', `${config.listen}:${config.port} is used by the running service`)];

  try {
    await requireFreePort(config.listen, config.port);
    return [ok('port', `${config.listen}:${config.port} is free`)];
  } catch (error) {
    if (error instanceof OperatorFailure) return [fault('port', error.message, error.remedy ?? '')];

    throw error;
  }
}
