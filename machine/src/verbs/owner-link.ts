// `berth owner-link`: makes a sign-in link for the owner of the operator's org locally, also while
// the service is stopped.
import { makeOwnerLink } from '../roles/control-plane/api-command.ts';
import { commandHint } from '../output/command-hint.ts';
import { isSupervised, instancePaths, readInstanceRecord } from '../supervisor/instance.ts';
import { publicUrl } from '../roles/control-plane/service.ts';
import type { VerbContext } from './context.ts';
import { withApiOnMachine } from './on-machine.ts';

/** Prints only the link on stdout, and its purpose on stderr. */
export async function makeOwnerLinkOnMachine(context: VerbContext): Promise<number> {
  return await withApiOnMachine(context, async (options) => {
    const { progress } = context;
    const { kind, path, email, minutes } = await makeOwnerLink(options);
    const whatFor =
      kind === 'welcome'
        ? 'Link for the owner to choose an address and a password'
        : `The owner's account ${email} has a password. Link to choose a new one`;
    progress.say(`${whatFor} (works once, within ${inWords(minutes)}; earlier links no longer work):`);
    const origin = await originOf(context);
    context.print(origin + path);
    progress.say(`It leads to the web console, ${origin}/console.`);
    return 0;
  });
}

/**
 * The service's public URL: that of the running or last `up`, else the one a new `up` would use.
 */
async function originOf({ config, environment, progress }: VerbContext): Promise<string> {
  const paths = instancePaths(config.dataFolder);
  if (!(await isSupervised(paths)))
    progress.say(`  The service is not running; ${commandHint('up', config)} starts it.`);

  const record = await readInstanceRecord(paths);
  return record?.publicUrl ?? record?.url ?? publicUrl(config, environment);
}

function inWords(minutes: number): string {
  return minutes % 1_440 === 0 ? `${minutes / 1_440} days` : `${minutes} minutes`;
}
