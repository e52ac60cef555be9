// Renewing ephemeral sandboxes on the wire.
import { renewSandbox } from '@berth/contract/sandbox-lifecycle.ts';
import * as renewals from '../services/sandbox-renew.ts';
import { bind } from './bind.ts';
import { viewSandbox } from './sandbox-view.ts';

export const renewRoutes = [
  bind(renewSandbox, async (context, { actor, params }) => ({
    sandbox: viewSandbox(await renewals.renewSandbox(context, actor, params.sandboxId)),
  })),
];
