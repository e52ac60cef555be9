// `berth demo`: the main scenario through the public HTTP API, with the milliseconds of each step.
// Uses the service running on the data folder; else starts one in the cache folder and stops it at
// the end.
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readIfPresent } from '@berth/os/durable-file.ts';
import { createKey } from '../roles/control-plane/api-command.ts';
import type { Config } from '../config/config.ts';
import { demoSteps } from './demo-steps.ts';
import type { StepResult } from './demo-steps.ts';
import { commandHint } from '../output/command-hint.ts';
import { OperatorFailure } from '../output/failure.ts';
import { CHECKOUT } from '../config/folders.ts';
import { startInstallation } from '../roles/installation.ts';
import { serviceVariables } from '../supervisor/start-roles.ts';
import { instancePaths, isSupervised, readInstanceRecord } from '../supervisor/instance.ts';
import { findFreePort } from '../config/ports.ts';
import { PublicApi } from './public-api.ts';
import { findServiceUser } from '../supervisor/service-user.ts';
import { readHostInfo } from '../roles/host/service.ts';
import { setUp } from '../setup/setup.ts';
import type { VerbContext } from './context.ts';

export async function demo(context: VerbContext): Promise<number> {
  const { config, progress, signal } = context;
  const startedAt = performance.now();
  const environment = { ...context.environment, ...(await setUp(context)) };
  const setUpMs = performance.now() - startedAt;
  const paths = instancePaths(config.dataFolder);
  const record = (await isSupervised(paths)) ? await readInstanceRecord(paths) : null;
  if (record !== null) {
    progress.say(`Using the service that runs with ${config.dataFolder}; console: ${record.publicUrl}/console`);
    return show(context, config, record.url, [{ name: 'set-up', tookMs: setUpMs, shown: 'complete', fault: null }]);
  }
  const own: Config = {
    ...config,
    dataFolder: join(config.cacheFolder, 'demo'),
    port: await findFreePort(config.listen),
    databaseUrl: null,
  };
  const startingAt = performance.now();
  const onEvent = (): void => undefined;
  const installation = await startInstallation(
    { checkout: CHECKOUT, config: own, progress, environment, onEvent },
    signal,
  );
  const steps: StepResult[] = [
    { name: 'set-up', tookMs: setUpMs, shown: 'packages, image, template', fault: null },
    { name: 'start', tookMs: performance.now() - startingAt, shown: 'database, host daemon, API', fault: null },
  ];
  try {
    return await show(context, own, installation.url, steps);
  } finally {
    await progress.step('stopping', () => installation.stop());
    // An interruption that no step met is one too.
    signal.throwIfAborted();
  }
}

async function show(context: VerbContext, config: Config, url: string, before: readonly StepResult[]): Promise<number> {
  const { print, signal } = context;
  const info = await readHostInfo(instancePaths(config.dataFolder), signal);
  const api = new PublicApi(url, await demoKey(context, config, url));
  const results = [...before, ...(await demoSteps(api, context.progress, signal))];
  print('');
  print(`${'step'.padEnd(26)} ${'ms'.padStart(8)}  result`);
  for (const { name, tookMs, shown, fault } of results) {
    const [first = '', ...rest] = (fault === null ? shown : `FAILED: ${fault}`).split('\n');
    print(`${name.padEnd(26)} ${tookMs.toFixed(0).padStart(8)}  ${first}`);
    rest.forEach((line) => print(`${' '.repeat(37)}${line}`));
  }
  print('');
  if (info !== null) {
    print(
      `accelerator ${info.accelerator}, QEMU ${info.qemuVersion ?? '(none)'}, template ${info.templateId ?? '(none)'}`,
    );
  }

  const faults = results.filter((result) => result.fault !== null);
  if (faults.length > 0) {
    throw new OperatorFailure(
      `${faults.length} of ${results.length} steps failed: ${faults.map((fault) => fault.name).join(', ')}`,
      {
        remedy:
          `the logs are in ${instancePaths(config.dataFolder).log}; ` +
          `${commandHint('doctor', config)} checks the machine`,
      },
    );
  }
  const up = commandHint('up', context.config);
  print(`Everything worked. ${up} starts the service, and prints an API key and the web console's address.`);
  return 0;
}

/**
 * The demo's dedicated key: kept between runs beside the other secrets, minted again if refused.
 */
async function demoKey(context: VerbContext, config: Config, url: string): Promise<string> {
  const { environment, signal } = context;
  const paths = instancePaths(config.dataFolder);
  const file = join(paths.secrets, 'demo-key');
  const kept = await readIfPresent(file);
  if (kept !== null && (await new PublicApi(url, kept.trim()).isAccepted(signal))) return kept.trim();

  const user = await findServiceUser(environment);
  const key = await createKey(
    { checkout: CHECKOUT, config, paths, user, environment: serviceVariables(environment) },
    'demo',
  );
  await rm(file, { force: true });
  await writeFile(file, `${key.token}\n`, { mode: 0o600 });
  return key.token;
}
