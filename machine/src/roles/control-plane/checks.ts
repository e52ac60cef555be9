// Checks of the control plane's role. Read-only.
import type { Config } from '../../config/config.ts';
import { requireFreePort } from '../../config/ports.ts';
import { fault, ok } from '../../doctor/check.ts';
import type { Check, Finding } from '../../doctor/check.ts';
import { OperatorFailure } from '../../output/failure.ts';
import { instancePaths, isSupervised, readInstanceRecord } from '../../supervisor/instance.ts';
import { apiUrl } from './service.ts';

export const portCheck = (config: Config): Check => ({ subject: 'port', run: () => checkPort(config) });

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
