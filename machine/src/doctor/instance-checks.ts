// Checks of a data folder, with any roles: its supervisor and its secrets. Read-only.
import { stat } from 'node:fs/promises';
import { isSame } from '@berth/os/process-identity.ts';
import { readIfPresent } from '@berth/os/durable-file.ts';
import { hasCode } from '@berth/os/errors.ts';
import { secretLines } from '@berth/protocol/secret-lines.ts';
import type { Config } from '../config/config.ts';
import { commandHint } from '../output/command-hint.ts';
import { instancePaths, isSupervised, readInstanceRecord, secretKeyFile } from '../supervisor/instance.ts';
import { fault, ok } from './check.ts';
import type { Check, Finding } from './check.ts';

export const supervisorCheck = (config: Config): Check => ({ subject: 'service', run: () => checkService(config) });

export const dataFolderCheck = (config: Config): Check => ({
  subject: 'data folder',
  run: () => checkDataFolder(config),
});

export const secretsCheck = (config: Config): Check => ({ subject: 'secrets', run: () => checkSecrets(config) });

async function checkService(config: Config): Promise<Finding[]> {
  const paths = instancePaths(config.dataFolder);
  if (!(await isSupervised(paths))) return [ok('service', `does not run with ${config.dataFolder}`)];

  const record = await readInstanceRecord(paths);
  if (record === null) return [ok('service', 'is starting')];

  const dead: string[] = [];
  for (const [name, process] of Object.entries(record.services)) if (!(await isSame(process))) dead.push(name);

  const detail = `runs: pid ${record.supervisor.pid}, ${record.url}`;
  return [
    dead.length === 0
      ? ok('service', detail)
      : fault(
          'service',
          `${detail}; not running: ${dead.join(', ')}`,
          `its supervisor restarts them; the reason is in ${paths.log}`,
        ),
  ];
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
            `other users can enter ${paths.secrets} (mode ${(mode & 0o777).toString(8)})`,
            `chmod 700 ${paths.secrets}`,
          )
        : ok('data folder', config.dataFolder),
    ];
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return [ok('data folder', `${config.dataFolder}: created at the first start`)];

    throw error;
  }
}

async function checkSecrets(config: Config): Promise<Finding[]> {
  const paths = instancePaths(config.dataFolder);
  const findings: Finding[] = [];
  for (const [name, path] of [
    ['secret-key', await secretKeyFile(paths)],
    ['host-token', paths.hostToken],
  ] as const) {
    const text = await readIfPresent(path);
    if (text === null) continue;
    try {
      const former = secretLines(text).length - 1;
      const rest = former === 0 ? '' : `, ${former} former: ${commandHint('secrets show', config)}`;
      findings.push(ok('secrets', `${name}: one current${rest}`));
    } catch (error) {
      const remedy = 'restore the file from the backup: without its secrets, stored credentials are lost';
      findings.push(fault('secrets', `${path}: ${(error as Error).message}`, remedy));
    }
  }
  return findings;
}
