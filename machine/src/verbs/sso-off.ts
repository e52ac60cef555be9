// `berth sso-off`: ends an org's requirement of single sign-on locally, also while the service is
// stopped, for owners who cannot sign in.
import { switchSsoOff } from '../roles/control-plane/api-command.ts';
import { commandHint } from '../output/command-hint.ts';
import { OperatorFailure } from '../output/failure.ts';
import type { VerbContext } from './context.ts';
import { withApiOnMachine } from './on-machine.ts';

/** Prints the org on stdout. */
export async function switchSsoOffOnMachine(context: VerbContext, org: string | undefined): Promise<number> {
  if (org === undefined) {
    throw new OperatorFailure('--org is missing', {
      remedy: `name the org: ${commandHint('sso-off', context.config, '--org', 'ORG')}`,
    });
  }
  return await withApiOnMachine(context, async (options) => {
    const { orgId, before } = await switchSsoOff(options, org);
    const was = before ? 'no longer requires' : 'did not require';
    context.progress.say(`the org ${orgId} ${was} single sign-on`);
    context.print(orgId);
    return 0;
  });
}
