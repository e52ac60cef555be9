// `berth up`: prepares this computer, starts everything and runs until stopped.
import { commandHint } from '../output/command-hint.ts';
import { OperatorFailure } from '../output/failure.ts';
import { CHECKOUT } from '../config/folders.ts';
import { startInstallation } from '../roles/installation.ts';
import { AlreadyRunning } from '../supervisor/start-roles.ts';
import { isSupervised, instancePaths, readInstanceRecord } from '../supervisor/instance.ts';
import { requireFreePort } from '../config/ports.ts';
import { apiUrl } from '../roles/control-plane/service.ts';
import { setUp } from '../setup/setup.ts';
import { isManaged, notifyReady } from '../systemd/systemctl.ts';
import type { SupervisorEvent } from '../supervisor/supervisor.ts';
import type { VerbContext } from './context.ts';
import type { RunningInstallation } from '../roles/installation.ts';

/** Resolves with the exit code when the service has stopped. */
export async function up(context: VerbContext): Promise<number> {
  const { config, progress, signal } = context;
  // Check early: the set-up may take minutes.
  const paths = instancePaths(config.dataFolder);
  if (await isSupervised(paths))
    return alreadyRuns(context, new AlreadyRunning(config.dataFolder, await readInstanceRecord(paths)));

  await requireFreePort(config.listen, config.port);
  const environment = { ...context.environment, ...(await setUp(context)) };
  if (signal.aborted) return 130;

  let installation: RunningInstallation;
  try {
    const onEvent = (event: SupervisorEvent): void => describe(event, context);
    installation = await startInstallation({ checkout: CHECKOUT, config, progress, environment, onEvent }, signal);
  } catch (error) {
    if (error instanceof AlreadyRunning) return alreadyRuns(context, error);

    if (signal.aborted) {
      progress.say('Stopped before all services had started.');
      return 130;
    }
    throw error;
  }
  if (isManaged(environment)) await announceToManager(context, installation);
  else printWelcome(context, installation);
  if (!signal.aborted)
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));

  await progress.step('stopping', () => installation.stop());
  progress.say(`Stopped. The next ${commandHint('up', config)} takes over the sandboxes.`);
  return 0;
}

/** Success if the running service has the requested address. */
function alreadyRuns(context: VerbContext, found: AlreadyRunning): number {
  const wanted = apiUrl(context.config);
  const there = found.record?.url;
  if (there !== undefined && there !== wanted) {
    throw new OperatorFailure(`${found.message}, not ${wanted}`, {
      remedy: `${commandHint('down', context.config)} first, or use another --data-dir for a second instance`,
    });
  }
  context.progress.say(found.message);
  return 0;
}

function describe(event: SupervisorEvent, context: VerbContext): void {
  const { progress } = context;
  if (event.kind === 'ended')
    progress.say(`! ${event.service} exited (${event.reason}); restarting in ${(event.pauseMs / 1000).toFixed(1)} s`);
  else if (event.kind === 'failed')
    progress.say(`! ${event.reason}\n  next try in ${(event.pauseMs / 1000).toFixed(1)} s`);
  else if (event.kind === 'started' && event.restart)
    progress.say(`✓ ${event.service} runs again (${(event.tookMs / 1000).toFixed(1)} s)`);
}

/** Without the first key and link: the journal keeps what it gets. */
async function announceToManager(
  { config, environment, print }: VerbContext,
  { url }: RunningInstallation,
): Promise<void> {
  print(`Berth runs: ${url} (data ${config.dataFolder})`);
  await notifyReady(environment);
}

function printWelcome(
  { print, config }: VerbContext,
  { url, publicUrl, previewUrl, first, paths }: RunningInstallation,
): void {
  print(`Berth runs: ${url}`);
  print(`  data        ${paths.root} (logs in ${paths.log})`);
  print(`  console     ${publicUrl}/console`);
  print(`  org         ${first.orgId}`);
  print(`  project     ${first.projectId ?? '(none)'}`);
  print(`  previews    ${previewUrl.replace('://', '://<port>-<sandbox id without sbx_>.')}`);
  if (first.created) {
    print(`  API key     ${first.token}   (shown once; ${commandHint('keys create', config)} creates another)`);
    print(`  sign in     ${publicUrl}${first.welcomePath}`);
    print(`              (works once; ${commandHint('owner-link', config)} creates another)`);
    print('');
    print('Create a sandbox and run a command in it:');
    print('');
    print(curlExample(url, first.token, first.orgId, first.projectId));
    print('');
    print('A terminal in it:');
    print('');
    print(`  BERTH_URL=${url} BERTH_API_KEY=${first.token} ./berth shell $SANDBOX`);
  } else {
    print(`  API key     shown at the first start; ${commandHint('keys create', config)} creates another`);
    print(`  sign in     ${publicUrl}/sign-in   (${commandHint('owner-link', config)} creates a link for the owner)`);
    print('');
    print(`  curl -s ${url}/health`);
  }
  print('');
  print(`Ctrl-C or ${commandHint('down', config)} stops it; sandboxes keep running.`);
}

/**
 * A single line for any POSIX shell that needs only curl and sed. The second call waits until the
 * sandbox runs.
 */
function curlExample(url: string, token: string, orgId: string, projectId: string): string {
  const call = (flags: string, path: string, body: object): string =>
    `curl ${flags} ${url}${path} -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json' ` +
    `-d '${JSON.stringify(body)}'`;
  const create = call('-s', `/v1/orgs/${orgId}/sandboxes`, { projectId, agent: 'agent_one', name: 'first' });
  const sandboxId = `sed -E 's/.*"id":"(sbx_[a-z2-7]+)".*/\\1/'`;
  const exec = call('-sf --retry 60 --retry-delay 1 --retry-all-errors', '/v1/sandboxes/$SANDBOX/exec', {
    command: 'uname -a; id',
  });
  return `  SANDBOX=$(${create} | ${sandboxId}) && ${exec}`;
}
