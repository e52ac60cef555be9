// Wire format of changes of a sandbox: renewal, egress policy, labels and idle time.
import { setEgress } from '@berth/contract/sandboxes/egress.ts';
import { renewSandbox } from '@berth/contract/sandboxes/lifecycle.ts';
import { updateSandbox } from '@berth/contract/sandboxes/update.ts';
import * as egress from '../../services/sandboxes/egress.ts';
import * as ephemeral from '../../services/sandboxes/ephemeral.ts';
import * as updates from '../../services/sandboxes/update.ts';
import { bind } from '../../call/bind.ts';
import { viewSandbox } from './view.ts';

export const sandboxChangeRoutes = [
  bind(renewSandbox, async (context, { actor, params }) => ({
    sandbox: viewSandbox(await ephemeral.renewSandbox(context, actor, params.sandboxId)),
  })),
  bind(setEgress, async (context, { actor, params, body }) => {
    const { sandbox, enforced } = await egress.setEgress(context, actor, params.sandboxId, body);
    return { sandbox: viewSandbox(sandbox), enforced };
  }),
  bind(updateSandbox, async (context, { actor, params, body }) => ({
    sandbox: viewSandbox(await updates.updateSandbox(context, actor, params.sandboxId, body)),
  })),
];
