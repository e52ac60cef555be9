// Wire format of renewals of ephemeral sandboxes.
import { renewSandbox } from '@berth/contract/sandboxes/lifecycle.ts';
import * as renewals from '../../services/sandboxes/renew.ts';
import { bind } from '../../call/bind.ts';
import { viewSandbox } from './view.ts';

export const renewRoutes = [
  bind(renewSandbox, async (context, { actor, params }) => ({
    sandbox: viewSandbox(await renewals.renewSandbox(context, actor, params.sandboxId)),
  })),
];
