// Wire format of sandboxes: create, list, count, fetch, destroy.
import { countSandboxes, listSandboxes } from '@berth/contract/sandboxes/list.ts';
import { createSandbox, destroySandbox, getSandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import * as creates from '../../services/sandboxes/create.ts';
import * as sandboxes from '../../services/sandboxes/sandboxes.ts';
import { bind } from '../../call/bind.ts';
import { viewSandbox } from './view.ts';

export const sandboxRoutes = [
  bind(listSandboxes, async (context, { params, query }) => {
    const { rows, fields } = await sandboxes.listSandboxes(context, params.orgId, query);
    return { sandboxes: rows.map(viewSandbox), ...fields };
  }),
  bind(countSandboxes, (context, { params, query }) => sandboxes.countSandboxes(context, params.orgId, query)),
  bind(createSandbox, async (context, { actor, params, body, markReplayed, ...answer }) => {
    const { sandbox, replayed } = await creates.createSandbox(context, actor, params.orgId, body, answer);
    if (replayed) markReplayed();
    return { sandbox: viewSandbox(sandbox) };
  }),
  bind(getSandbox, async (context, { sandbox }) => {
    const startDelays = await sandboxes.startDelaysOf(context, sandbox);
    return { sandbox: { ...viewSandbox(sandbox), ...(startDelays === undefined ? {} : { startDelays }) } };
  }),
  bind(destroySandbox, async (context, { actor, params, ...answer }) => ({
    sandbox: viewSandbox(await sandboxes.destroySandbox(context, actor, params.sandboxId, answer)),
  })),
];
