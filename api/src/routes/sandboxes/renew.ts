// Wire format of renewals of ephemeral sandboxes, and of egress policies.
import { setEgress } from '@berth/contract/sandboxes/egress.ts';
import { renewSandbox } from '@berth/contract/sandboxes/lifecycle.ts';
import * as egress from '../../services/sandboxes/egress.ts';
import * as renewals from '../../services/sandboxes/renew.ts';
import { bind } from '../../call/bind.ts';
import { viewSandbox } from './view.ts';

export const renewRoutes = [
  bind(renewSandbox, async (context, { actor, params }) => ({
    sandbox: viewSandbox(await renewals.renewSandbox(context, actor, params.sandboxId)),
  })),
  bind(setEgress, async (context, { actor, params, body }) => {
    const { sandbox, enforced } = await egress.setEgress(context, actor, params.sandboxId, body);
    return { sandbox: viewSandbox(sandbox), enforced };
  }),
];
