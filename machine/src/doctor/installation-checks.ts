// What belongs to Berth on this machine: its network, its port, its data folder, its checkout,
// image and template. Looks only.
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ensurePostgresBinaries } from '../roles/database/binaries.ts';
import { checkGuestCidr, checkNetworkRights, checkOtherFirewalls } from '@berth/host/network/preflight.ts';
import type { NetworkFault } from '@berth/host/network/preflight.ts';
import { isSame } from '@berth/os/process-identity.ts';
import type { Config } from '../config/config.ts';
import { OperatorFailure } from '../output/failure.ts';
import { instancePaths, isSupervised, readInstanceRecord } from '../supervisor/instance.ts';
import { requireFreePort } from '../config/ports.ts';
import { apiUrl } from '../roles/control-plane/service.ts';
import { fault, ok, warn } from './check.ts';
import type { Check, Finding } from './check.ts';

export function installationChecks(config: Config): Check[] {
  return [
    { subject: 'service', run: () => checkService(config) },
    { subject: 'port', run: () => checkPort(config) },
    { subject: 'data folder', run: () => checkDataFolder(config) },
    { subject: 'database', run: () => checkDatabase(config) },
    { subject: 'network', run: () => checkNetwork(config) },
    {
      subject: 'firewall',
      run: async () =>
        toFindings('firewall', await checkOtherFirewalls(), 'no chain of others drops by default', 'warn'),
    },
  ];
}

async function checkService(config: Config): Promise<Finding[]> {
  const paths = instancePaths(config.dataFolder);
  if (!(await isSupervised(paths))) return [ok('service', `does not run with ${config.dataFolder}`)];

  const record = await readInstanceRecord(paths);
  if (record === null) return [ok('service', 'is just starting')];

  const dead: string[] = [];
  for (const [name, process] of Object.entries(record.services)) if (!(await isSame(process))) dead.push(name);

  const detail = `runs: pid ${record.supervisor.pid}, ${record.url}`;
  return [
    dead.length === 0
      ? ok('service', detail)
      : fault(
          'service',
          `${detail}; not running: ${dead.join(', ')}`,
          `its supervisor starts them again; the reason is in ${paths.log}`,
        ),
  ];
}

async function checkPort(config: Config): Promise<Finding[]> {
  const paths = instancePaths(config.dataFolder);
  const own = (await isSupervised(paths)) ? await readInstanceRecord(paths) : null;
  if (own?.url === apiUrl(config)) return [ok('port', `${config.listen}:${config.port} is the running service's`)];

  try {
    await requireFreePort(config.listen, config.port);
    return [ok('port', `${config.listen}:${config.port} is free`)];
  } catch (error) {
    if (error instanceof OperatorFailure) return [fault('port', error.message, error.remedy ?? '')];

    throw error;
  }
}

async function checkDataFolder(config: Config): Promise<Finding[]> {
  const paths = instancePaths(config.dataFolder);
  try {
    const { mode } = await stat(paths.secrets);
    const open = (mode & 0o077) !== 0;
    return [
      open
        ? fault(
            'data folder',
            `${paths.secrets} can be entered by others (mode ${(mode & 0o777).toString(8)})`,
            `chmod 700 ${paths.secrets}`,
          )
        : ok('data folder', config.dataFolder),
    ];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT')
      return [ok('data folder', `${config.dataFolder}: made at the first start`)];

    throw error;
  }
}

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

async function checkNetwork(config: Config): Promise<Finding[]> {
  const rights = await checkNetworkRights(config.guestCidr);
  const addresses = rights.length > 0 ? [] : await checkGuestCidr(config.guestCidr);
  return toFindings(
    'network',
    [...rights, ...addresses],
    `slots can be made, ${config.guestCidr} is not in use`,
    'fault',
  );
}

function toFindings(
  subject: string,
  faults: readonly NetworkFault[],
  detail: string,
  grade: 'warn' | 'fault',
): Finding[] {
  const made = grade === 'warn' ? warn : fault;
  return faults.length === 0
    ? [ok(subject, detail)]
    : faults.map((found) => made(subject, found.message, found.remedy));
}
