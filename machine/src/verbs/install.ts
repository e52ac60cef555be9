// `berth install --systemd` and `berth uninstall`: the service as a unit of systemd.
import { rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { readIfPresent, writeDurably } from '@berth/os/durable-file.ts';
import { hasCode } from '@berth/os/errors.ts';
import { readConfig, settingsOf, type Flags } from '../config/config.ts';
import { CHECKOUT } from '../config/folders.ts';
import { commandHint, shellWord } from '../output/command-hint.ts';
import { OperatorFailure } from '../output/failure.ts';
import { apiUrl } from '../roles/control-plane/service.ts';
import { setUp } from '../setup/setup.ts';
import { instancePaths, isSupervised } from '../supervisor/instance.ts';
import { foreignWriter } from '../systemd/checkout-writers.ts';
import { readSettings, serviceSettings, writeSettings } from '../systemd/settings.ts';
import { lastMessages, runsSystemd, systemctl, systemdVersion } from '../systemd/systemctl.ts';
import { SETTINGS_FILE, UNIT, UNIT_FILE, unitText } from '../systemd/unit.ts';
import type { VerbContext } from './context.ts';
import { down } from './down.ts';

interface InstallFlags extends Flags {
  systemd?: boolean;
  /** False with `--no-start`. */
  start?: boolean;
}

/**
 * Prepares this computer, writes unit and settings, and starts the service. Repeatable: settings of
 * an earlier install stay, unless given anew; an unchanged running service is left alone.
 */
export async function install(context: VerbContext, flags: InstallFlags): Promise<number> {
  const { progress, print, signal } = context;
  if (flags.systemd !== true) throw new OperatorFailure('--systemd is missing: no other kind of service is known');
  await requireSystemd('install');
  const former = await readSettings(SETTINGS_FILE);
  const environment = { ...former, ...context.environment };
  const config = readConfig(flags, environment);
  const paths = instancePaths(config.dataFolder);
  const formerUnit = await readIfPresent(UNIT_FILE);
  if (formerUnit === null && (await isSupervised(paths))) {
    throw new OperatorFailure(`Berth already runs with ${config.dataFolder}, outside of systemd`, {
      remedy: `${commandHint('down', config)} first; sandboxes keep running`,
    });
  }
  const writer = await foreignWriter(join(CHECKOUT, 'berth'));
  if (writer !== null)
    progress.say(`! Root runs the checkout at each start, but ${writer}: move it to a place such as /opt/berth`);
  await setUp({ ...context, config, environment });

  const settings = { ...serviceSettings(environment), ...settingsOf(flags, config) };
  const unit = unitText({ checkout: CHECKOUT, ...config, version: await systemdVersion() });
  await writeSettings(SETTINGS_FILE, settings);
  await writeDurably(UNIT_FILE, unit, 0o644);
  print(`Wrote ${UNIT_FILE}`);
  print(`Wrote ${SETTINGS_FILE} (settings; after a change: systemctl restart berth)`);
  await systemctl(['daemon-reload'], signal);
  await systemctl(['enable', '--quiet', UNIT], signal);
  if (flags.start === false) {
    print('Start it: systemctl start berth');
    return 0;
  }
  const changed = unit !== formerUnit || JSON.stringify(await readSettings(SETTINGS_FILE)) !== JSON.stringify(former);
  await progress.step('start of the service', () =>
    systemctl([changed ? 'restart' : 'start', UNIT], signal).catch(async (error: Error) => {
      throw new OperatorFailure(`${error.message}\n${await lastMessages(UNIT)}`, {
        remedy: `journalctl --unit ${UNIT} has more; systemd tries again every 5 s`,
      });
    }),
  );
  print(`Berth runs: ${apiUrl(config)}, now and after each start of this computer`);
  print(`  state       systemctl status berth`);
  print(`  messages    journalctl --unit berth; logs in ${paths.log}`);
  print(`  API key     ${commandHint('keys create', config)}`);
  print(`  sign in     ${commandHint('owner-link', config)}`);
  return 0;
}

/** Puts the sandboxes to sleep and removes the service. Keeps the data. Idempotent. */
export async function uninstall(context: VerbContext): Promise<number> {
  await requireSystemd('uninstall');
  const { print, signal } = context;
  if ((await readIfPresent(UNIT_FILE)) === null) {
    print(`Berth is not installed: there is no ${UNIT_FILE}.`);
    return 0;
  }
  const environment = { ...context.environment, ...(await readSettings(SETTINGS_FILE)) };
  const config = readConfig({}, environment);
  // Only a running service can put VMs to sleep.
  if (!(await isSupervised(instancePaths(config.dataFolder)))) {
    await systemctl(['start', UNIT], signal).catch((error: Error) =>
      context.progress.say(`! VMs that run now keep running: ${error.message}`),
    );
  }
  // A clean exit: systemd does not restart it.
  await down({ ...context, config, environment }, { sleep: true });
  await systemctl(['disable', '--now', '--quiet', UNIT], signal);
  for (const file of [UNIT_FILE, SETTINGS_FILE]) await rm(file, { force: true });
  await rmdir(dirname(SETTINGS_FILE)).catch((error: unknown) => {
    if (!hasCode(error, 'ENOENT', 'ENOTEMPTY')) throw error;
  });
  await systemctl(['daemon-reload'], signal);
  print(`Removed ${UNIT_FILE} and ${SETTINGS_FILE}.`);
  print(`The data of sandboxes and orgs stays in ${config.dataFolder}:`);
  print(`  use it again      ${commandHint('up', config)}`);
  print(`  delete it         rm -r ${shellWord(config.dataFolder)}`);
  print(`  delete the cache  rm -r ${shellWord(config.cacheFolder)}`);
  return 0;
}

async function requireSystemd(verb: string): Promise<void> {
  const refused = `cannot ${verb} the service`;
  if (process.getuid?.() !== 0)
    throw new OperatorFailure(`${refused}: root's rights are needed`, { remedy: `sudo ./berth ${verb}` });

  if (await runsSystemd()) return;
  throw new OperatorFailure(`${refused}: systemd does not run on this host`, {
    remedy: 'run ./berth up under the service manager of this host; docs/operations.md has what it needs',
  });
}
