// `berth plans set`: changes an org's plan locally, also while the service is stopped.
import { setPlan } from '../roles/control-plane/api-command.ts';
import { commandHint } from '../output/command-hint.ts';
import { OperatorFailure } from '../output/failure.ts';
import type { VerbContext } from './context.ts';
import { withApiOnMachine } from './on-machine.ts';

/** Prints the org and its new plan on stdout. */
export async function setPlanOnMachine(
  context: VerbContext,
  org: string | null,
  plan: string | undefined,
): Promise<number> {
  if (plan === undefined) {
    throw new OperatorFailure('--plan is missing', {
      remedy:
        'docs/operations.md lists the plans: ' +
        commandHint('plans set', context.config, '--org', org ?? 'ORG', '--plan', 'PLAN'),
    });
  }
  return await withApiOnMachine(context, async (options) => {
    const { orgId, before } = await setPlan(options, org, plan);
    const had = before === null ? 'none' : `${before.plan}${before.status === 'active' ? '' : ` (${before.status})`}`;
    context.progress.say(`the org ${orgId} now has the plan ${plan}; before: ${had}`);
    context.print(`${orgId} ${plan}`);
    return 0;
  });
}
